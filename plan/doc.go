// Package plan turns YAML text and command options into plans, and plans into
// YAML text.
//
// Text or options from a user come in, a checked model.Plan or one clear error
// goes out. It runs nothing, opens no file, and invents no setting that the
// printed plan would not show.
package plan
