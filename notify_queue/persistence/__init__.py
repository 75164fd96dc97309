"""The only place that speaks SQL: models, the unit of work and the repositories it opens."""
