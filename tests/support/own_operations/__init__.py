"""Operations of a team's own, as their folder may look."""
