package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// kills are the steps in which something is killed.
func (s *story) kills() []step {
	return []step{
		{"kill: a machine's pod", func(ctx context.Context) (string, error) {
			node, err := s.victim(ctx, false)
			if err != nil {
				return "", err
			}
			return s.replaced(ctx, node, func() error { return s.deletePod(ctx, s.machines(), node.Name) })
		}},
		{"kill: init of the machine of vpn-shoot", func(ctx context.Context) (string, error) {
			node, err := s.victim(ctx, true)
			if err != nil {
				return "", err
			}
			return s.replaced(ctx, node, func() error { return s.killIn(ctx, node.Name, "init", isInit) })
		}},
		{"kill: kubelet", s.killProgram("kubelet")},
		{"kill: containerd", s.killProgram("containerd")},
		{"kill: gardener-node-agent", s.killProgram("gardener-node-agent")},
		{"kill: vpn-shoot", func(ctx context.Context) (string, error) {
			return s.podReplaced(ctx, s.inside, metav1.NamespaceSystem, "vpn-shoot-")
		}},
		{"kill: vpn-seed-server", func(ctx context.Context) (string, error) {
			return s.podReplaced(ctx, s.seed, s.namespace, "vpn-seed-server-")
		}},
		{"kill: machine-controller-manager", func(ctx context.Context) (string, error) {
			return s.podReplaced(ctx, s.seed, s.namespace, "machine-controller-manager-")
		}},
		{"kill: that one and a machine's pod", func(ctx context.Context) (string, error) {
			node, err := s.victim(ctx, false)
			if err != nil {
				return "", err
			}
			manager, err := podOf(ctx, s.seed, s.namespace, "machine-controller-manager-")
			if err != nil {
				return "", err
			}
			return s.replaced(ctx, node, func() error {
				return errors.Join(s.deletePod(ctx, s.namespace, manager.Name), s.deletePod(ctx, s.machines(), node.Name))
			})
		}},
		{"kill: kube-apiserver", func(ctx context.Context) (string, error) {
			return s.podReplaced(ctx, s.seed, s.namespace, "kube-apiserver-")
		}},
	}
}

// victim is a node with a pod of the workload and preferably without the agent of the tunnel, or the one with the agent.
func (s *story) victim(ctx context.Context, tunnel bool) (*corev1.Node, error) {
	agent, err := podOf(ctx, s.inside, metav1.NamespaceSystem, "vpn-shoot-")
	if err != nil {
		return nil, err
	}
	name := agent.Spec.NodeName
	if !tunnel {
		pods := &corev1.PodList{}
		if err := s.inside.List(ctx, pods, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app}); err != nil {
			return nil, err
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp == nil && (name == agent.Spec.NodeName || pod.Spec.NodeName != agent.Spec.NodeName) {
				name = pod.Spec.NodeName
			}
		}
	}
	node := &corev1.Node{}
	return node, s.inside.Get(ctx, client.ObjectKey{Name: name}, node)
}

// podOf is the pod whose name has a prefix, and that is not being deleted.
func podOf(ctx context.Context, c client.Reader, namespace, prefix string) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; strings.HasPrefix(pod.Name, prefix) && pod.DeletionTimestamp == nil {
			return pod, nil
		}
	}
	return nil, fmt.Errorf("no pod %s... in namespace %s", prefix, namespace)
}

// machines is the namespace of the pods that are machines.
func (s *story) machines() string { return localv1alpha1.InfrastructureNamespace(s.namespace) }

func (s *story) deletePod(ctx context.Context, namespace, name string) error {
	return s.seed.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, client.GracePeriodSeconds(0))
}

// replaced kills a machine, and waits until its node is gone, another one is Ready, and the workload is complete.
func (s *story) replaced(ctx context.Context, node *corev1.Node, kill func() error) (string, error) {
	pool := node.Labels[constants.WorkerPool]
	count := map[string]int{tested: 2, other: 1}[pool]
	begin := time.Now()
	if err := kill(); err != nil {
		return "", err
	}
	if err := kube.Await(ctx, s.inside, &corev1.NodeList{}, func(nodes []*corev1.Node) error {
		if len(nodes) > 0 {
			return fmt.Errorf("node %s still exists", node.Name)
		}
		return nil
	}, nil, client.MatchingFields{"metadata.name": node.Name}); err != nil {
		return "", err
	}
	noted := time.Since(begin)
	if err := s.pool(ctx, pool, count, noneOf([]string{node.Name})); err != nil {
		return "", err
	}
	replaced := time.Since(begin)
	err := errors.Join(s.deployed(ctx, app), s.deployed(ctx, proberApp), s.reached(ctx, ""), s.healthy(ctx))
	return fmt.Sprintf("node gone after %s, another one Ready after %s", noted.Round(time.Second), replaced.Round(time.Second)), err
}

// killProgram kills a program of a machine.
func (s *story) killProgram(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		node, err := s.victim(ctx, false)
		if err != nil {
			return "", err
		}
		match := func(dir string) bool { return programOf(dir) == name }
		before, err := s.processes(ctx, node.Name, match)
		if err != nil {
			return "", err
		}
		begin := time.Now()
		if err := s.killIn(ctx, node.Name, name, match); err != nil {
			return "", err
		}
		if err := again(ctx, func() error {
			now, err := s.processes(ctx, node.Name, match)
			if err == nil && (len(now) == 0 || slices.Contains(before, now[0])) {
				err = fmt.Errorf("%s does not run", name)
			}
			return err
		}); err != nil {
			return "", err
		}
		back := time.Since(begin)
		if err := s.reached(ctx, node.Name); err != nil {
			return "", err
		}
		note := fmt.Sprintf("it runs after %s, logs and exec after %s", back.Round(100*time.Millisecond), time.Since(begin).Round(100*time.Millisecond))
		return note, errors.Join(s.pool(ctx, tested, 2, nil), s.healthy(ctx))
	}
}

// podReplaced deletes a pod by force, and waits until another one is Ready, and the nodes are reachable.
func (s *story) podReplaced(ctx context.Context, c client.WithWatch, namespace, prefix string) (string, error) {
	pod, err := podOf(ctx, c, namespace, prefix)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	if err := c.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return "", err
	}
	if err := kube.Await(ctx, c, &corev1.PodList{}, func(pods []*corev1.Pod) error {
		for _, other := range pods {
			if strings.HasPrefix(other.Name, prefix) && other.UID != pod.UID {
				return kube.PodReady(other)
			}
		}
		return fmt.Errorf("no other pod %s", prefix)
	}, nil, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	ready := time.Since(begin)
	if err := s.reached(ctx, ""); err != nil {
		return "", err
	}
	note := fmt.Sprintf("another one is Ready after %s, logs and exec work after %s", ready.Round(100*time.Millisecond), time.Since(begin).Round(100*time.Millisecond))
	return note, s.healthy(ctx)
}

// reached waits until logs and exec work for the pod of the workload on a node, or on any.
func (s *story) reached(ctx context.Context, node string) error {
	return again(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, logsTimeout)
		defer cancel()
		pods := &corev1.PodList{}
		if err := s.inside.List(ctx, pods, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		err := fmt.Errorf("node %q has no pod of %s", node, app)
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && (node == "" || pod.Spec.NodeName == node) {
				if err = s.reach(ctx, pod.Name); err == nil {
					return nil
				}
			}
		}
		return err
	})
}

func (s *story) reach(ctx context.Context, pod string) error {
	pods := s.clientset.CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx); err != nil {
		return err
	}
	request := s.clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(metav1.NamespaceDefault).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"/server", "say", "hello"}, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(s.config, http.MethodGet, request.URL().String())
	if err != nil {
		return err
	}
	var out, errOut bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}); err != nil {
		return err
	}
	if out.String() != "[hello]\n" {
		return fmt.Errorf("output is %q, and %q", out.String(), errOut.String())
	}
	return nil
}

// again retries something that cannot be watched until it works.
func again(ctx context.Context, do func() error) error {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		}
	}
}

// isInit reports whether a process is the first one of a machine.
func isInit(dir string) bool {
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil || string(name) != "systemd\n" {
		return false
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if ids, found := strings.CutPrefix(line, "NSpid:"); found {
			ids := strings.Fields(ids)
			return ids[len(ids)-1] == "1"
		}
	}
	return false
}

// killIn kills the matching processes of a machine.
func (s *story) killIn(ctx context.Context, machine, name string, match func(dir string) bool) error {
	pids, err := s.processes(ctx, machine, match)
	if err != nil {
		return err
	}
	if len(pids) != 1 {
		return fmt.Errorf("machine %s has %d processes that are %s", machine, len(pids), name)
	}
	return syscall.Kill(pids[0], syscall.SIGKILL)
}

// processes are the matching processes of a machine.
func (s *story) processes(ctx context.Context, machine string, match func(dir string) bool) ([]int, error) {
	pod := &corev1.Pod{}
	if err := s.seed.Get(ctx, client.ObjectKey{Namespace: s.machines(), Name: machine}, pod); err != nil {
		return nil, err
	}
	var found []int
	for _, dir := range s.killer.processes() {
		cgroup, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil || !bytes.Contains(cgroup, []byte(pod.UID)) || !match(dir) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			found = append(found, pid)
		}
	}
	return found, nil
}
