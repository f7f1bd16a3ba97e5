package dependencywatchdog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/test/env"
)

// TestProcesses runs both processes with a kube-apiserver, which is that of the seed and of the shoot.
func TestProcesses(t *testing.T) {
	e := env.Start(t)
	scheme := scheme(t)
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, read := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){crds.Extensions, crds.Machine} {
		definitions, err := read()
		if err != nil {
			t.Fatal(err)
		}
		if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	admin := filepath.Join(dir, "kubeconfig")
	if err := e.WriteKubeconfig(admin); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(admin)
	if err != nil {
		t.Fatal(err)
	}
	create := func(objects ...client.Object) {
		t.Helper()
		for _, object := range objects {
			if err := c.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
		}
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "a", Image: "a"}},
	}}
	nodes, leases, machines := shootOf(60, 60)
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	cluster.Spec.CloudProfile.Raw = []byte(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"CloudProfile"}`)
	cluster.Spec.Shoot.Raw = []byte(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","spec":{"provider":{"workers":[{"name":"a"}]}},` +
		`"status":{"lastOperation":{"type":"Create","state":"Succeeded"}}}`)
	create(
		cluster, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-node-lease"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "access"}, Data: map[string][]byte{"kubeconfig": kubeconfig}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "controller"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Template: template,
		}},
	)
	for i := range nodes {
		leases[i].Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(-time.Minute)))
		create(&nodes[i], &leases[i], &machines[i])
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crashes", Labels: map[string]string{"a": "b"}}, Spec: template.Spec}
	pod.Spec.ServiceAccountName, pod.Spec.AutomountServiceAccountToken = "default", new(false)
	create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}, pod)
	env.EditStatus(t, c, pod, func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	})

	run := func(role, config string) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		cmd := NewCommand()
		cmd.SetArgs([]string{role, "--config-file=" + write(role, config), "--kubeconfig=" + admin, "--metrics-bind-addr=127.0.0.1:0", "--health-bind-addr=127.0.0.1:0"})
		ended := make(chan error, 1)
		go func() { ended <- cmd.ExecuteContext(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", role, err)
			}
		})
	}
	run("prober", `{kubeConfigSecretName: access, probeInterval: 1s, initialDelay: 1ms, kcmNodeMonitorGraceDuration: 40s,
  dependentResourceInfos: [{ref: {kind: Deployment, name: controller, apiVersion: apps/v1}, optional: false, scaleUp: {level: 0}, scaleDown: {level: 0}}]}`)
	run("weeder", `{servicesAndDependantSelectors: {etcd: {podSelectors: [{matchLabels: {a: b}}]}}}`)

	pods := func(want int32) func(*appsv1.Deployment) error {
		return func(d *appsv1.Deployment) error {
			if got := ptr.Deref(d.Spec.Replicas, -1); got != want || protected(d) != (want == 0) {
				return fmt.Errorf("it has %d pods and annotations %v", got, d.Annotations)
			}
			return nil
		}
	}
	env.Await(t, c, env.Named[*appsv1.Deployment](namespace, "controller"), pods(0))
	for i := range leases {
		leases[i].Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(time.Hour)))
		if err := c.Update(t.Context(), &leases[i]); err != nil {
			t.Fatal(err)
		}
	}
	env.Await(t, c, env.Named[*appsv1.Deployment](namespace, "controller"), pods(1))

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(errors.Join(errors.New("the pod is gone before its Service is ready"), err))
	}
	create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "etcd-1", Labels: map[string]string{"kubernetes.io/service-name": "etcd"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	})
	env.AwaitGone(t, c, pod)
}
