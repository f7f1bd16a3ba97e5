package gardenctl

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout is how long a shell waits for names: users rarely wait longer.
const completionTimeout = 5 * time.Second

// completion completes names of objects in a garden. Errors are ignored, as a shell cannot show them.
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
		return matching(found, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// matching returns the names that start with the prefix.
func matching(names []string, prefix string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
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

// completeLogs completes "shoot NAME COMPONENT" with the components of the shoot's control plane. The shoot may be the targeted one.
func (c *cli) completeLogs(cmd *cobra.Command, args []string, prefix string, r logRequest) ([]string, cobra.ShellCompDirective) {
	if r.list || len(args) == 1 && isShoot(args[0]) {
		return c.completeShoot(cmd, args, prefix)
	}
	var found []string
	if len(args) == 0 {
		found = append(found, "shoot")
	}
	ctx, cancel := within(cmd.Context(), completionTimeout)
	defer cancel()
	if _, _, pods, err := c.controlPlane(ctx, args, r.seedKubeconfig); err == nil {
		found = append(found, sortedKeys(byComponent(pods))...)
	}
	return matching(found, prefix), cobra.ShellCompDirectiveNoFileComp
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
