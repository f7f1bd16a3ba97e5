package nodeproblemdetector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	component "gardener.cloud/gardener/internal/component/nodeproblemdetector"
	"gardener.cloud/gardener/pkg/kube"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// TestProcess runs the process of a Node with the permissions that are deployed.
func TestProcess(t *testing.T) {
	e := env.Start(t)
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	deploy(t, c)
	config := env.WithToken(e.Config, tokenOf(t, c, "a"))
	dir := t.TempDir()
	log := filepath.Join(dir, "kmsg")
	if err := unix.Mkfifo(log, 0o600); err != nil {
		t.Fatal(err)
	}
	device, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	write := func(message string) {
		t.Helper()
		if _, err := fmt.Fprintf(device, "6,1,13000000,-;%s\n", message); err != nil {
			t.Fatal(err)
		}
	}
	b := newBus(t, nil)
	port := ports.Free(t, 1)[0]
	stop := start(t, config, "--kernel-log="+log, "--system-bus="+b.socket, "--port="+strconv.Itoa(port))

	step := env.Story(t)
	step("conditions appear")
	node := env.Await(t, c, env.Named[*corev1.Node]("", "a"), hasConditions(map[corev1.NodeConditionType]string{
		kernelDeadlock: "False", readonlyFilesystem: "False", frequentUnregisterDevice: "False", frequentKubeletRestart: "False", frequentContainerdRestart: "False",
	}))
	if ready := conditionOf(node, corev1.NodeReady); ready == nil || ready.Reason != "KubeletReady" {
		t.Errorf("the kubelet's condition is %v", ready)
	}

	step("a filesystem becomes read-only")
	write(remounted)
	env.Await(t, c, env.Named[*corev1.Node]("", "a"), hasConditions(map[corev1.NodeConditionType]string{readonlyFilesystem: "True", kernelDeadlock: "False"}))
	env.AwaitList(t, c, func(events []*corev1.Event) error {
		if slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Kind == "Node" && e.InvolvedObject.UID == "a" && e.Reason == "FilesystemIsReadOnly" && e.Message == remounted
		}) {
			return nil
		}
		return fmt.Errorf("there are %d events", len(events))
	}, client.InNamespace(metav1.NamespaceDefault))
	if text := get(t, port, "/metrics"); !strings.Contains(text, `problem_gauge{reason="FilesystemIsReadOnly",type="ReadonlyFilesystem"} 1`) ||
		!strings.Contains(text, `node_problem_detector_source_readable{source="systemd"} 1`) {
		t.Errorf("the metrics are:\n%s", text)
	}
	if text := get(t, port, "/healthz"); text != "ok" {
		t.Errorf("/healthz is %q", text)
	}

	step("a steady state writes nothing")
	before := readNode(t, c, "a").ResourceVersion
	write(waits) // an event, and no condition
	env.AwaitList(t, c, func(events []*corev1.Event) error {
		if slices.ContainsFunc(events, func(e *corev1.Event) bool { return e.Reason == reasonUnregisterNetDevice }) {
			return nil
		}
		return fmt.Errorf("there are %d events", len(events))
	}, client.InNamespace(metav1.NamespaceDefault))
	if after := readNode(t, c, "a").ResourceVersion; after != before {
		t.Errorf("the Node has changed from %s to %s", before, after)
	}
	stop()

	step("after a restart, conditions without a source are deleted")
	stop = start(t, config, "--kernel-log="+filepath.Join(dir, "missing"), "--system-bus="+b.socket, "--port="+strconv.Itoa(port))
	node = env.Await(t, c, env.Named[*corev1.Node]("", "a"), hasConditions(map[corev1.NodeConditionType]string{
		kernelDeadlock: "", readonlyFilesystem: "", frequentUnregisterDevice: "", frequentKubeletRestart: "False", frequentContainerdRestart: "False",
	}))
	if conditionOf(node, corev1.NodeReady) == nil {
		t.Error("the kubelet's condition is gone")
	}
	stop()

	step("a pod writes its own Node only")
	mine, err := client.New(config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	condition := client.RawPatch("application/strategic-merge-patch+json", []byte(`{"status":{"conditions":[{"type":"KernelDeadlock","status":"True"}]}}`))
	label := client.RawPatch("application/strategic-merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	env.Await(t, c, env.Named[*corev1.Node]("", "b"), func(b *corev1.Node) error { // policies act a moment after they were created
		if err := mine.Status().Patch(t.Context(), b.DeepCopy(), condition); !refused(err) {
			env.Edit(t, c, b, func(b *corev1.Node) { b.Annotations = map[string]string{"try": time.Now().String()} })
			return fmt.Errorf("the Node of another pod is written: %w", err)
		}
		return nil
	})
	if err := mine.Status().Patch(t.Context(), readNode(t, c, "a"), label); !refused(err) {
		t.Errorf("a label is written: %v", err)
	}
	if err := mine.Status().Patch(t.Context(), readNode(t, c, "a"), condition); err != nil {
		t.Errorf("the Node of the pod cannot be written: %v", err)
	}
}

// refused says whether the policy has refused a request.
func refused(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), component.Name)
}

// deploy creates two Nodes, and what is deployed in a shoot.
func deploy(t *testing.T, c client.WithWatch) {
	t.Helper()
	for _, name := range []string{"a", "b"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
		if err := c.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range component.Objects(component.Values{Image: "registry.example/gardener:v1", APIServer: "api.example.com"}) {
		if _, ok := object.(*appsv1.DaemonSet); ok {
			continue // this API server allows no privileged pods
		}
		if err := kube.Apply(t.Context(), c, "test", object); err != nil {
			t.Fatal(err)
		}
	}
}

// tokenOf returns a token of the pod on a Node.
func tokenOf(t *testing.T, c client.Client, node string) string {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: component.Name},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: component.Name, Containers: []corev1.Container{{Name: "a", Image: "a"}},
		},
	}
	if err := c.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: component.Name}}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// start runs the process, and returns how to stop it.
func start(t *testing.T, config *rest.Config, flags ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := NewCommand()
	cmd.SetArgs(append([]string{"--node-name=a", "--kubeconfig=" + env.KubeconfigFile(t, config)}, flags...))
	cmd.SetErr(t.Output())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// hasConditions checks the status of conditions. An empty one says that there is none.
func hasConditions(want map[corev1.NodeConditionType]string) func(*corev1.Node) error {
	return func(node *corev1.Node) error {
		var errs []error
		for typ, status := range want {
			got := ""
			if c := conditionOf(node, typ); c != nil {
				got = string(c.Status)
			}
			if got != status {
				errs = append(errs, fmt.Errorf("condition %s is %q, not %q", typ, got, status))
			}
		}
		return errors.Join(errs...)
	}
}

func conditionOf(node *corev1.Node, typ corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == typ {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

func readNode(t *testing.T, c client.Client, name string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		t.Fatal(err)
	}
	return node
}

// get returns what the process serves at a path.
func get(t *testing.T, port int, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(port)+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
