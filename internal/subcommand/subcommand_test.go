package subcommand

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string // the error; if empty, the help is printed
	}{
		"nothing":       {nil, ""},
		"a typing slip": {[]string{"pust", "it"}, `unknown command "pust" for "tool"; did you mean "push"?; list what there is with: tool --help`},
		"something":     {[]string{"other"}, `unknown command "other" for "tool"; list what there is with: tool --help`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			cmd := &cobra.Command{Use: "tool", Args: cobra.ArbitraryArgs, RunE: Choose, SilenceErrors: true, SilenceUsage: true}
			cmd.AddCommand(&cobra.Command{Use: "push", Run: func(*cobra.Command, []string) {}})
			cmd.SetOut(&out)
			cmd.SetArgs(append([]string{}, tc.args...))
			err := cmd.Execute()
			switch {
			case tc.want == "" && (err != nil || !strings.Contains(out.String(), "push")):
				t.Errorf("error %v, output %q, want the help", err, out.String())
			case tc.want != "" && (err == nil || err.Error() != tc.want || out.Len() > 0):
				t.Errorf("error %v, output %q, want error %q and no output", err, out.String(), tc.want)
			}
		})
	}
}
