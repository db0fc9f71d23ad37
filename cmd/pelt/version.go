package main

import (
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version of this source. A packager's build replaces it: -ldflags "-X main.release=1.2.3".
var release = "0.1.0"

// buildInfo is what this program was built from. The last three are empty where the tool chain recorded no commit.
type buildInfo struct {
	Version string `json:"version"` // as other commands and files show it
	Release string `json:"release"`
	Go      string `json:"go"`
	System  string `json:"system"` // GOOS/GOARCH

	Commit     string `json:"commit,omitempty"`
	CommitTime string `json:"commit_time,omitempty"`
	Modified   bool   `json:"modified,omitempty"` // files differed from the commit
}

func built() buildInfo {
	b := buildInfo{Version: release, Release: release, Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.CommitTime = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if len(b.Commit) >= 12 {
		b.Version += "+" + b.Commit[:12]
		if b.Modified {
			b.Version += ".modified"
		}
	}
	return b
}

func version() string { return built().Version }

func printVersion(w io.Writer) error {
	_, err := io.WriteString(w, "pelt "+version()+"\n")
	return err
}

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "version prints the release and the commit of this program.",
		Example: "  pelt version\n  pelt version --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return encodeJSON(c.OutOrStdout(), built())
			}
			return printVersion(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document in place of the text")
	return c
}
