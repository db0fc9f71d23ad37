package web

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pelt/words"
)

// TestScriptsInChinese: each text of a script has Chinese words.
func TestScriptsInChinese(t *testing.T) {
	names, err := fs.Glob(assets, "assets/*.js")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		text, err := assets.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range scriptText.FindAllStringSubmatch(string(text), -1) {
			if found++; words.Chinese.Say(m[1]) == m[1] {
				t.Errorf("%s: no Chinese words for %q", name, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d texts were found", found)
	}
}

// TestAccepted: a page is in the language that the browser asks for, and so are the texts of its scripts.
func TestAccepted(t *testing.T) {
	s := serverOf(t, Options{})
	get := func(path, language string) string {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
		r.Header.Set("Accept-Language", language)
		r.AddCookie(&http.Cookie{Name: cookie(r), Value: s.Token})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Body.String()
	}
	for _, c := range []struct{ path, language, want string }{
		{"/", "zh-CN,zh;q=0.9", `<html lang="zh-CN">`},
		{"/", "zh-CN,zh;q=0.9", "<h1>运行记录</h1>"},
		{"/", "de,en;q=0.8", "<h1>Kept runs</h1>"},
		{"/assets/words.js", "zh", `"The test has ended":"测试已结束"`},
		{"/assets/words.js", "en", `"The test has ended":"The test has ended"`},
		{"/run/nosuch", "zh", "没有这次运行"},
	} {
		if got := get(c.path, c.language); !strings.Contains(got, c.want) {
			t.Errorf("%s for %s has no %q:\n%s", c.path, c.language, c.want, got)
		}
	}
}
