// Package render writes pages as text, HTML, SVG, PNG and CSV.
//
// Sections of package view come in, bytes go out. It knows no kind of test, computes
// no figure and keeps no sentence of a result. Names from outside are made safe here,
// for terminals as for browsers.
package render
