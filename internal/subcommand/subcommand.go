// Package subcommand is for commands that do nothing but hold others.
package subcommand

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Choose is the RunE of a command that holds others, which takes any arguments: without one it prints the help, and with one that is no
// subcommand it fails and says which one may be meant.
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
