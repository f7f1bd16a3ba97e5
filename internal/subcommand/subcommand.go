// Package subcommand is for commands that only have subcommands.
package subcommand

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Choose is the RunE of a command with subcommands. Without arguments it prints the help; with an unknown subcommand it returns an error that
// suggests a similar one.
func Choose(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2 // letters, as cobra has it for its own errors
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %q?", near[0])
	}
	return fmt.Errorf("%s; list what there is with: %s --help", text, cmd.CommandPath())
}
