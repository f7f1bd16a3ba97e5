package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/landscape"
)

func (c *cli) statusCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show machines, the garden, seeds, shoots and memory of a landscape",
		Long: `Examples:
  landscape status
  landscape status -o wide      # also what takes the memory
  landscape status -o json

The exit code is 0 if everything runs and is healthy, and 3 if not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Refused before any request.
			if !slices.Contains([]string{"", "wide", "json", "yaml"}, output) {
				return fmt.Errorf("--output must be wide, json or yaml, not %q", output)
			}
			l, err := c.open()
			if err != nil {
				return err
			}
			status, err := l.Status(cmd.Context())
			if err != nil {
				return err
			}
			if err := printStatus(c.out, status, output, time.Now()); err != nil {
				return err
			}
			if !status.Healthy() {
				return exitCode(3)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "wide, json or yaml (default: a table)")
	return cmd
}

func printStatus(out io.Writer, status *landscape.Status, output string, now time.Time) error {
	switch output {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(status)
	case "yaml":
		data, err := yaml.Marshal(status)
		if err != nil {
			return err
		}
		_, err = out.Write(data)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "Landscape %s in %s, network %s, registry %s\n", status.Name, status.Dir, status.Subnet, status.Registry)
	for _, service := range status.Containers {
		fmt.Fprintf(w, "\n%s\t%s", service.Name, either(service.Running, "running", "not running"))
	}
	fmt.Fprintln(w)
	for _, cluster := range status.Clusters {
		fmt.Fprintf(w, "\nCluster %s (Kubernetes %s), load balancer addresses %s, %d of %d pods ready\n", cluster.Name, cluster.Version, cluster.Pool, cluster.PodsReady, cluster.Pods)
		if cluster.Problem != "" {
			fmt.Fprintf(w, "problem: %s\n", cluster.Problem)
		}
		fmt.Fprintf(w, "MACHINE\tADDRESS\tZONE\tSTATE\tNODE\n")
		for _, machine := range cluster.Machines {
			node := "ready"
			if !machine.Ready {
				node = machine.Problem
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", machine.Name, machine.Address, machine.Zone, either(machine.Running, "running", "stopped"), node)
		}
	}
	if status.Garden != nil {
		printGarden(w, status.Garden, output == "wide", now)
	}
	printMemory(w, status.Memory, output == "wide")
	if !status.Healthy() {
		fmt.Fprintf(w, "\nProblems:\n")
	}
	for _, problem := range status.Problems {
		fmt.Fprintf(w, "  %s\n", problem)
	}
	return w.Flush()
}

func printGarden(w io.Writer, garden *landscape.GardenStatus, wide bool, now time.Time) {
	if garden.Problem != "" {
		fmt.Fprintf(w, "\nproblem of the garden: %s\n", garden.Problem)
	}
	fmt.Fprintf(w, "\nCOMPONENT\tCLUSTER\tNAMESPACE\tVERSION\tMEMORY\tSTATE\n")
	for _, c := range garden.Components {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.Cluster, c.Namespace, c.Version, mebibytes(c.Usage.Proportional), cmp.Or(c.Problem, "healthy"))
	}
	if len(garden.Seeds) > 0 {
		fmt.Fprintf(w, "\nSEED\tGARDENER\tKUBERNETES\tCONDITIONS\tSTATE\n")
	}
	for _, seed := range garden.Seeds {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", seed.Name, seed.Version, seed.Kubernetes, conditions(seed.Conditions), cmp.Or(seed.Problem, "ready"))
	}
	if len(garden.Shoots) > 0 {
		fmt.Fprintf(w, "\nSHOOT\tSEED\tKUBERNETES\tLAST OPERATION\tCONDITIONS\tNODES\tAGE\tCONTROL PLANE\tMACHINES\tSTATE\n")
	}
	for _, shoot := range garden.Shoots {
		var controlPlane int64
		for _, used := range shoot.ControlPlane {
			controlPlane += used.Proportional
		}
		fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\t%s\t%s\n", shoot.Namespace, shoot.Name, shoot.Seed, shoot.Kubernetes, brief(shoot.LastOperation),
			conditions(shoot.Conditions), shoot.MachinesReady, shoot.Machines, duration.HumanDuration(now.Sub(shoot.Created)), mebibytes(controlPlane),
			mebibytes(shoot.Nodes.Proportional), cmp.Or(shoot.Problem, either(shoot.Hibernated, "hibernated", "healthy")))
	}
	if !wide {
		return
	}
	for _, shoot := range garden.Shoots {
		fmt.Fprintf(w, "\nCONTROL PLANE OF %s/%s\tPODS\tPROPORTIONAL\tCPU SINCE START\n", shoot.Namespace, shoot.Name)
		for _, used := range shoot.ControlPlane {
			fmt.Fprintf(w, "%s\t%d\t%s\t%.1fs\n", used.Component, used.Pods, mebibytes(used.Proportional), used.Processor)
		}
	}
}

// conditions counts those that are True.
func conditions(all []landscape.ConditionStatus) string {
	isTrue := 0
	for _, condition := range all {
		if condition.Status == string(corev1beta1.ConditionTrue) {
			isTrue++
		}
	}
	return fmt.Sprintf("%d/%d", isTrue, len(all))
}

// brief is a last operation without its description.
func brief(operation string) string {
	operation, _, _ = strings.Cut(operation, ",")
	operation, _, _ = strings.Cut(operation, ";")
	return operation
}

func printMemory(w io.Writer, programs []landscape.MemoryStatus, wide bool) {
	var total landscape.MemoryStatus
	if wide {
		fmt.Fprintf(w, "\nPROGRAM\tPROCESSES\tRESIDENT\tPROPORTIONAL\n")
	}
	for _, m := range programs {
		if wide {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", m.Program, m.Processes, mebibytes(m.Resident), mebibytes(m.Proportional))
		}
		total.Processes += m.Processes
		total.Proportional += m.Proportional
	}
	fmt.Fprintf(w, "\nAll %d processes together take %s of memory.\n", total.Processes, mebibytes(total.Proportional))
}

func either(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.0f MiB", float64(bytes)/(1<<20)) }

func (c *cli) kubeconfigCommand() *cobra.Command {
	var content bool
	show := func(file string) error {
		if !content {
			_, err := fmt.Fprintln(c.out, file)
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		_, err = c.out.Write(data)
		return err
	}
	cmd := &cobra.Command{
		Use:   "kubeconfig [CLUSTER]",
		Short: "Print the path of a cluster's kubeconfig",
		Long: `Examples:
  export KUBECONFIG=$(landscape kubeconfig)    # the garden, or the runtime cluster of a landscape without a garden
  kubectl --kubeconfig $(landscape kubeconfig runtime) get gardens
  landscape kubeconfig local-2 --content > seed.yaml
  kubectl --kubeconfig $(landscape kubeconfig shoot garden-local/local) get nodes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := c.open()
			if err != nil {
				return err
			}
			name := landscape.RuntimeCluster
			if l.HasGarden() {
				name = landscape.VirtualGarden
			}
			if len(args) > 0 {
				name = args[0]
			}
			if err := l.CheckKubeconfig(name); err != nil {
				return err
			}
			return show(l.KubeconfigFile(name))
		},
	}
	cmd.PersistentFlags().BoolVar(&content, "content", false, "print the kubeconfig itself")
	cmd.AddCommand(c.shootKubeconfigCommand(show))
	return cmd
}

func (c *cli) shootKubeconfigCommand(show func(file string) error) *cobra.Command {
	access := landscape.Access{}
	cmd := &cobra.Command{
		Use:   "shoot NAMESPACE/NAME",
		Short: "Request a kubeconfig for a shoot that works on this computer, and print its path",
		Long: `Examples:
  kubectl --kubeconfig $(landscape kubeconfig shoot garden-local/local) get nodes
  landscape kubeconfig shoot garden-local/local --viewer --expiration 30m --content

The names of shoots are resolved within the landscape only. This kubeconfig has the address of the gateway instead, so it needs no DNS.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.open()
			if err != nil {
				return err
			}
			namespace, name, ok := strings.Cut(args[0], "/")
			if !ok || namespace == "" || name == "" {
				return fmt.Errorf("invalid shoot %q; name it as NAMESPACE/NAME", args[0])
			}
			access.Shoot = client.ObjectKey{Namespace: namespace, Name: name}
			file, err := l.ShootKubeconfig(cmd.Context(), access)
			if err != nil {
				return err
			}
			return show(file)
		},
	}
	cmd.Flags().BoolVar(&access.Viewer, "viewer", false, "read-only, and without access to Secrets")
	cmd.Flags().DurationVar(&access.Expiration, "expiration", kubeconfigLife, "how long the credentials are valid; the garden may allow less")
	return cmd
}
