// Command gardener is all server components in one binary. The first argument, or the name of the executable, selects one.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"gardener.cloud/gardener/internal/admissioncontroller"
	"gardener.cloud/gardener/internal/announcer"
	"gardener.cloud/gardener/internal/apiserver"
	"gardener.cloud/gardener/internal/backuprestore"
	"gardener.cloud/gardener/internal/cloudcontroller"
	"gardener.cloud/gardener/internal/controllermanager"
	"gardener.cloud/gardener/internal/dependencywatchdog"
	"gardener.cloud/gardener/internal/discoveryserver"
	"gardener.cloud/gardener/internal/etcddruid"
	"gardener.cloud/gardener/internal/extensioninit"
	"gardener.cloud/gardener/internal/gardenlet"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/guard"
	"gardener.cloud/gardener/internal/gateway"
	"gardener.cloud/gardener/internal/machinecontroller"
	"gardener.cloud/gardener/internal/nodeagent"
	"gardener.cloud/gardener/internal/nodeproblemdetector"
	"gardener.cloud/gardener/internal/operator"
	"gardener.cloud/gardener/internal/provider/hosts"
	"gardener.cloud/gardener/internal/provider/local"
	"gardener.cloud/gardener/internal/resourcemanager"
	"gardener.cloud/gardener/internal/scheduler"
	"gardener.cloud/gardener/internal/tunnel"
)

// commands are the components by name.
var commands = map[string]func() *cobra.Command{
	admissioncontroller.Name: func() *cobra.Command {
		return admissioncontroller.Component(os.Getenv(admissioncontroller.KubeconfigEnv)).Command()
	},
	apiserver.Name:              apiserver.NewCommand,
	backuprestore.Name:          backuprestore.NewCommand,
	announcer.Name:              announcer.NewCommand,
	cloudcontroller.Name:        cloudcontroller.NewCommand,
	cloudcontroller.HostsName:   cloudcontroller.NewHostsCommand,
	controllermanager.Name:      controllermanager.Component().Command,
	dependencywatchdog.Name:     dependencywatchdog.NewCommand,
	discoveryserver.Name:        discoveryserver.NewCommand,
	gardenlet.Name:              gardenlet.Component().Command,
	guard.Name:                  guard.NewCommand,
	gateway.Name:                gateway.NewCommand,
	gateway.ProxyName:           gateway.NewProxyCommand,
	etcddruid.Name:              etcddruid.Component().Command,
	extensioninit.Name:          extensioninit.NewCommand,
	hosts.Name:                  hosts.NewCommand,
	local.Name:                  local.Component().Command,
	local.AdmissionName:         local.NewAdmissionCommand,
	machinecontroller.Name:      machinecontroller.NewCommand,
	machinecontroller.HostsName: machinecontroller.NewHostsCommand,
	machinecontroller.LocalName: machinecontroller.NewLocalCommand,
	nodeagent.Name:              nodeagent.NewCommand,
	nodeproblemdetector.Name:    nodeproblemdetector.NewCommand,
	operator.Name:               operator.Component().Command,
	resourcemanager.Name:        resourcemanager.Component().Command,
	scheduler.Name:              scheduler.Component().Command,

	tunnel.ServerName:         tunnel.NewServerCommand,
	tunnel.AgentName:          tunnel.NewAgentCommand,
	tunnel.APIServerProxyName: tunnel.NewAPIServerProxyCommand,
}

func main() {
	name, args := choose(os.Args)
	if slices.Contains([]string{"", "-h", "--help", "help"}, name) {
		if err := help(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "error: "+err.Error())
			os.Exit(1)
		}
		return
	}
	newCommand, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "error: unknown component %q; list them with: gardener --help\n", name)
		os.Exit(2)
	}
	cmd := newCommand()
	cmd.SetArgs(args)
	// The first signal ends the context, the second the process.
	if err := cmd.ExecuteContext(genericapiserver.SetupSignalContext()); err != nil {
		os.Exit(1)
	}
}

// help writes the components, with a description of each.
func help(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, `Examples:
  gardener gardenlet --config=config.yaml
  gardener gardenlet --help

All server components in one binary: the first argument, or the name it is started by, says which.

Components:
`)
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		fmt.Fprintf(w, "  %s\t%s\n", name, commands[name]().Short)
	}
	return w.Flush()
}

// choose returns the component that a command line selects, and its arguments.
func choose(argv []string) (string, []string) {
	if name := filepath.Base(argv[0]); commands[name] != nil {
		return name, argv[1:]
	}
	if len(argv) < 2 {
		return "", nil
	}
	return argv[1], argv[2:]
}
