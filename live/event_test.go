package live

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"pelt/model"
)

// TestEventsPage: the page of events names each field. Those of documents have pages of their own.
func TestEventsPage(t *testing.T) {
	text, err := os.ReadFile("../docs/scripting.md")
	if err != nil {
		t.Fatal(err)
	}
	var check func(what reflect.Type)
	check = func(what reflect.Type) {
		for what.Kind() == reflect.Pointer || what.Kind() == reflect.Slice {
			what = what.Elem()
		}
		own := what.PkgPath() == reflect.TypeFor[Event]().PkgPath() || what == reflect.TypeFor[model.FlowSoFar]()
		if what.Kind() != reflect.Struct || !own {
			return
		}
		for field := range what.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/scripting.md does not name %s of %s", name, what.Name())
			}
			check(field.Type)
		}
	}
	check(reflect.TypeFor[Event]())
}
