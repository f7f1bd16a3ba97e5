package gardenctl

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout is how long a shell waits for names. A person gives up about then.
const completionTimeout = 5 * time.Second

// completion completes names that a garden knows. It is silent about errors, as there is no place for them.
func (c *cli) completion(names func(context.Context, *garden, Target) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		g, target, err := c.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := within(cmd.Context(), completionTimeout)
		defer cancel()
		found, err := names(ctx, g, target)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.DeleteFunc(found, func(name string) bool { return !strings.HasPrefix(name, prefix) }), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeShoot completes "shoot NAME".
func (c *cli) completeShoot(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return []string{"shoot"}, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && isShoot(args[0]):
		return c.completion(c.shootNames)(cmd, args, prefix)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (c *cli) completeGardens(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	config, err := c.config()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, garden := range config.Gardens {
		if strings.HasPrefix(garden.Name, prefix) {
			found = append(found, garden.Name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
