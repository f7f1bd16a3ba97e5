package gardenctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// logRequest selects logs.
type logRequest struct {
	list, follow, previous bool
	container              string
	tail                   int64
	since                  time.Duration
	seedKubeconfig         string
}

func (c *cli) logsCommand() *cobra.Command {
	var r logRequest
	cmd := &cobra.Command{
		Use: "logs [shoot NAME] COMPONENT", Short: "Print logs of the control plane of a shoot", Args: cobra.MaximumNArgs(3),
		Long: c.examples(`logs shoot my-cluster --list                          # components, pods, restarts
  PROGRAM logs shoot my-cluster kube-apiserver -f --tail=20
  PROGRAM logs shoot my-cluster etcd-main -c etcd --since=10m
  PROGRAM logs kube-controller-manager --previous               # of the targeted shoot, before its last restart`) + `
It needs access to the seed: with --seed-kubeconfig, with "` + c.program() + ` config add seed", or with the garden's kubeconfig if the garden is
the seed too. Lines of several pods begin with the pod and the container.`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return c.completeLogs(cmd, args, prefix, r)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			component := ""
			if !r.list {
				if len(args) == 0 || len(args) == 2 && isShoot(args[0]) {
					return errors.New("name a component; list them with --list")
				}
				component, args = args[len(args)-1], args[:len(args)-1]
			}
			return c.logs(cmd.Context(), args, component, r)
		},
	}
	cmd.Flags().BoolVar(&r.list, "list", false, "list the components that have logs")
	cmd.Flags().BoolVarP(&r.follow, "follow", "f", false, "also print new lines as they are logged")
	cmd.Flags().BoolVarP(&r.previous, "previous", "p", false, "of the containers before their last restart")
	cmd.Flags().StringVarP(&r.container, "container", "c", "", "container (default: the main one of each pod)")
	cmd.Flags().Int64Var(&r.tail, "tail", -1, "number of last lines of each pod (-1 for all)")
	cmd.Flags().DurationVar(&r.since, "since", 0, "only lines that are newer than this, such as 10m")
	cmd.Flags().StringVar(&r.seedKubeconfig, "seed-kubeconfig", "", "kubeconfig of the seed")
	return cmd
}

func (c *cli) logs(ctx context.Context, args []string, component string, r logRequest) error {
	pods, namespace, found, err := c.controlPlane(ctx, args, r.seedKubeconfig)
	if err != nil {
		return err
	}
	components := byComponent(found)
	if r.list {
		return printComponents(c.Out, components)
	}
	selected := components[component]
	if len(selected) == 0 {
		return fmt.Errorf("no pod of component %q in namespace %q of the seed; there are: %s", component, namespace, strings.Join(sortedKeys(components), ", "))
	}
	return c.printLogs(ctx, pods.Pods(namespace), selected, r)
}

// controlPlane returns a client of the seed, and the pods of the shoot on it.
func (c *cli) controlPlane(ctx context.Context, args []string, seedKubeconfig string) (*corev1client.CoreV1Client, string, []corev1.Pod, error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	p, err := c.find(ctx, args)
	if err != nil {
		return nil, "", nil, err
	}
	shoot, err := c.read(ctx, p)
	if err != nil {
		return nil, "", nil, err
	}
	seedName, namespace := shoot.Status.SeedName, shoot.Status.TechnicalID
	if seedName == nil {
		seedName = shoot.Spec.SeedName
	}
	if seedName == nil || namespace == "" {
		return nil, "", nil, fmt.Errorf("shoot %q has no control plane yet", p.name)
	}
	config, sure := p.config, false
	if i := slices.IndexFunc(p.seeds, func(s SeedConfig) bool { return s.Name == *seedName }); i >= 0 && seedKubeconfig == "" {
		seedKubeconfig = p.seeds[i].Kubeconfig
	}
	if seedKubeconfig != "" {
		loaded, err := loadKubeconfig(seedKubeconfig, "")
		if err != nil {
			return nil, "", nil, fmt.Errorf("seed %q: %w", *seedName, err)
		}
		config, sure = loaded.config, true
	}
	seed, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, "", nil, err
	}
	noAccess := fmt.Errorf("no access to seed %q; set --seed-kubeconfig FILE, or run: %s config add seed %s FILE", *seedName, c.program(), *seedName)
	if _, err := seed.Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
		switch {
		case apierrors.IsNotFound(err) && sure:
			return nil, "", nil, fmt.Errorf("namespace %q not found on seed %q; check the kubeconfig", namespace, *seedName)
		case !sure: // the garden is not the seed, or the user has no access to it
			return nil, "", nil, noAccess
		}
		return nil, "", nil, fmt.Errorf("seed %q: %w", *seedName, err)
	}
	list, err := seed.Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", nil, fmt.Errorf("seed %q: %w", *seedName, err)
	}
	return seed, namespace, list.Items, nil
}

// componentOf is the name of a pod's workload: that of its owner, without the suffixes that controllers generate.
func componentOf(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return pod.Name
	case owner.Kind == "ReplicaSet":
		return strings.TrimSuffix(owner.Name, "-"+pod.Labels["pod-template-hash"])
	}
	return owner.Name
}

func byComponent(pods []corev1.Pod) map[string][]corev1.Pod {
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	components := map[string][]corev1.Pod{}
	for _, pod := range pods {
		name := componentOf(&pod)
		components[name] = append(components[name], pod)
	}
	return components
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func printComponents(out io.Writer, components map[string][]corev1.Pod) error {
	rows := [][]string{{"COMPONENT", "POD", "READY", "RESTARTS", "CONTAINERS"}}
	for _, name := range sortedKeys(components) {
		for _, pod := range components[name] {
			ready, restarts := 0, int32(0)
			for _, status := range pod.Status.ContainerStatuses {
				restarts += status.RestartCount
				if status.Ready {
					ready++
				}
			}
			var containers []string
			for _, container := range pod.Spec.Containers {
				containers = append(containers, container.Name)
			}
			rows = append(rows, []string{name, pod.Name, fmt.Sprintf("%d/%d", ready, len(containers)), fmt.Sprint(restarts), strings.Join(containers, ",")})
		}
	}
	var page bytes.Buffer
	table(&page, "", rows)
	_, err := out.Write(page.Bytes())
	return err
}

// mainContainer is the container whose logs are printed by default.
func mainContainer(pod *corev1.Pod) string {
	if name := pod.Annotations["kubectl.kubernetes.io/default-container"]; name != "" {
		return name
	}
	return pod.Spec.Containers[0].Name
}

// printLogs prints the logs of pods: one after the other, or all at once if they are followed. An error for one pod does not stop the
// others.
func (c *cli) printLogs(ctx context.Context, client corev1client.PodInterface, pods []corev1.Pod, r logRequest) error {
	var lines sync.Mutex
	printOne := func(pod *corev1.Pod) error {
		options := &corev1.PodLogOptions{Container: r.container, Follow: r.follow, Previous: r.previous}
		if options.Container == "" {
			options.Container = mainContainer(pod)
		}
		if r.tail >= 0 {
			options.TailLines = &r.tail
		}
		if r.since > 0 {
			seconds := int64(max(r.since, time.Second) / time.Second)
			options.SinceSeconds = &seconds
		}
		stream, err := client.GetLogs(pod.Name, options).Stream(ctx)
		if err != nil {
			return fmt.Errorf("pod %q: %w", pod.Name, err)
		}
		defer stream.Close()
		prefix := ""
		if len(pods) > 1 {
			prefix = "[" + pod.Name + "/" + options.Container + "] "
		}
		if err := copyLines(c.Out, stream, prefix, &lines); err != nil {
			return fmt.Errorf("pod %q: %w", pod.Name, err)
		}
		return nil
	}
	failures := make([]error, len(pods))
	var all sync.WaitGroup
	for i := range pods {
		if !r.follow {
			failures[i] = printOne(&pods[i])
			continue
		}
		all.Go(func() {
			err := printOne(&pods[i])
			if failures[i] = err; err == nil || len(pods) == 1 || ctx.Err() != nil {
				return
			}
			lines.Lock() // the warning is printed now, as the others go on
			defer lines.Unlock()
			fmt.Fprintln(c.ErrOut, "warning: "+oneLine(err))
		})
	}
	all.Wait()
	return utilerrors.NewAggregate(failures)
}

// copyLines copies whole lines, so that those of several pods do not mix.
func copyLines(out io.Writer, in io.Reader, prefix string, lines *sync.Mutex) error {
	reader := bufio.NewReader(in)
	for {
		text, err := reader.ReadString('\n')
		if text != "" {
			lines.Lock()
			_, writeErr := io.WriteString(out, prefix+strings.TrimSuffix(text, "\n")+"\n")
			lines.Unlock()
			if writeErr != nil {
				return writeErr
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
