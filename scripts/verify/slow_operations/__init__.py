"""Operations of a team's own that are slow themselves: the database is not what they wait for."""
