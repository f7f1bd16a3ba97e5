package main

import (
	"strings"
	"testing"
)

// A command that does not exist fails, and writes nothing that a script may take for an answer.
func TestUnknownCommands(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"at the root":     {[]string{"kubeconfg"}, `unknown command "kubeconfg" for "landscape"; did you mean "kubeconfig"?`},
		"nothing near":    {[]string{"frobnicate"}, `unknown command "frobnicate" for "landscape"; list what there is with: landscape --help`},
		"in a group":      {[]string{"images", "psh"}, `unknown command "psh" for "landscape images"; did you mean "push"?`},
		"no cluster, too": {[]string{"kubeconfig", "shot", "garden-local/local"}, "accepts at most 1 arg"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut strings.Builder
			cmd := newCommand(strings.NewReader(""), &out, &errOut)
			cmd.SetArgs(tc.args)
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
			if out.Len() > 0 {
				t.Errorf("standard output has %q", out.String())
			}
		})
	}
}

func TestHelpOfGroups(t *testing.T) {
	for _, args := range [][]string{{}, {"images"}} {
		var out strings.Builder
		cmd := newCommand(strings.NewReader(""), &out, &out)
		cmd.SetArgs(args)
		if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), "Available Commands:") {
			t.Errorf("landscape %v: %v, %q", args, err, out.String())
		}
	}
}
