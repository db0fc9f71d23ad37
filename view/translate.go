package view

// translated is a page whose fixed words, such as titles and heads of columns, are in its language. Sentences, and
// words that hold figures or names, were made in it.
func (p Page) translated() Page {
	say := p.Language.Say
	p.Title = say(p.Title)
	for _, sections := range [][]Section{p.Sections, p.SetUp} {
		for i, s := range sections {
			switch s := s.(type) {
			case Heading:
				sections[i] = Heading{say(s.Text)}
			case Text:
				sections[i] = Text{say(s.Text)}
			case Tiles:
				for j, t := range s {
					s[j].Label, s[j].Value, s[j].Note = say(t.Label), say(t.Value), say(t.Note)
				}
			case Table:
				s.Title, s.Note = say(s.Title), say(s.Note)
				for j, c := range s.Columns {
					s.Columns[j].Label = say(c.Label)
				}
				for _, row := range s.Rows {
					for j, c := range row {
						row[j].Text, row[j].Note = say(c.Text), say(c.Note)
					}
				}
				sections[i] = s
			case Chart:
				s.Language, s.Title, s.Note = p.Language, say(s.Title), say(s.Note)
				s.X.Label, s.Y.Label, s.Z.Label = say(s.X.Label), say(s.Y.Label), say(s.Z.Label)
				for j, x := range s.Series {
					s.Series[j].Name = say(x.Name)
				}
				for j, m := range s.Marks {
					s.Marks[j].Text = say(m.Text)
				}
				sections[i] = s
			case Times:
				s.Title, s.Note = say(s.Title), say(s.Note)
				for j, g := range s.Gaps {
					s.Gaps[j].Text = say(g.Text)
				}
				sections[i] = s
			case Path:
				s.Title = say(s.Title)
				sections[i] = s
			}
		}
	}
	return p
}
