"""Every port on AWS, over low-level clients that ``bootstrap`` makes."""
