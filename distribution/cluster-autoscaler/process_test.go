package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/clusterautoscaler"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/test/env"
)

const control = "shoot--dev--crazy"

// shifted is a clock that is ahead of time.
type shifted struct {
	clock.RealClock
	by atomic.Int64
}

func (s *shifted) Now() time.Time                  { return time.Now().Add(time.Duration(s.by.Load())) }
func (s *shifted) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
func (s *shifted) Step(by time.Duration)           { s.by.Add(int64(by)) }

// site is both clusters, with a kube-scheduler and something that plays the machine-controller-manager.
type site struct {
	seed, shoot client.WithWatch
	clock       *shifted
}

func TestProcess(t *testing.T) {
	e := env.Start(t, env.Lenient())
	shootConfig := e.AddCluster(t)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &site{clock: &shifted{}}
	for config, c := range map[*rest.Config]*client.WithWatch{e.Config: &s.seed, shootConfig: &s.shoot} {
		var err error
		if *c, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
			t.Fatal(err)
		}
	}
	definitions, err := crds.Machine()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), s.seed, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	create(t, s.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: control}}, s.manager())
	env.EditStatus(t, s.seed, s.manager(), func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	})
	s.schedule(t, shootConfig)
	s.group(t, "worker", 1)
	s.group(t, "zero", 0)
	s.playMachines(t)
	s.run(t, e.Config, shootConfig)

	step := env.Story(t)
	step("one to five nodes for 60 pods")
	for i := range 60 {
		s.pod(t, fmt.Sprintf("many-%d", i), "300m", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "worker"} })
	}
	env.AwaitList(t, s.shoot, func(pods []*corev1.Pod) error {
		for _, p := range pods {
			if p.Spec.NodeName == "" {
				return fmt.Errorf("pod %s has no node", p.Name)
			}
		}
		return nil
	}, client.InNamespace("default"))
	s.awaitReplicas(t, "worker", 5)
	env.AwaitList(t, s.shoot, func(events []*corev1.Event) error {
		for _, e := range events {
			if e.Reason == "TriggeredScaleUp" && strings.Contains(e.Message, "->5 (max: 5)}") {
				return nil
			}
		}
		return errors.New("no event TriggeredScaleUp")
	}, client.InNamespace("default"))

	step("a pod that no node would help gets an event")
	giant := s.pod(t, "giant", "100", nil)
	env.AwaitList(t, s.shoot, func(events []*corev1.Event) error {
		for _, e := range events {
			if e.Reason == "NotTriggerScaleUp" && e.InvolvedObject.Name == "giant" && strings.Contains(e.Message, "Insufficient cpu") {
				return nil
			}
		}
		return errors.New("no event NotTriggerScaleUp")
	}, client.InNamespace("default"))
	if err := s.shoot.Delete(t.Context(), giant); err != nil {
		t.Fatal(err)
	}

	step("five to one without pods")
	if err := s.shoot.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	s.awaitStatus(t, "ready: 5", "candidates: 4")
	s.clock.Step(59 * time.Minute) // not the hour after the last addition
	if d := s.deployment(t, "worker"); d.Spec.Replicas != 5 {
		t.Errorf("%d replicas before nodes were idle for long enough", d.Spec.Replicas)
	}
	s.clock.Step(2 * time.Minute)
	s.awaitReplicas(t, "worker", 1)
	env.AwaitList(t, s.shoot, counts[*corev1.Node](1))

	step("from zero, and back to it")
	p := s.pod(t, "first", "2", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "zero"} })
	env.Await(t, s.shoot, env.Named[*corev1.Pod]("default", "first"), scheduled)
	s.awaitReplicas(t, "zero", 1)
	if err := s.shoot.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	s.awaitStatus(t, "candidates: 1")
	s.clock.Step(2 * time.Hour)
	s.awaitReplicas(t, "zero", 0)
	s.awaitStatus(t, "ready: 1", "NoCandidates")

	step("a PodDisruptionBudget keeps a node")
	env.Edit(t, s.seed, s.deployment(t, "worker"), func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 3 })
	var names []string
	env.AwaitList(t, s.shoot, func(nodes []*corev1.Node) error {
		names = nil
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		slices.Sort(names)
		return counts[*corev1.Node](3)(nodes)
	})
	for i, name := range names[:2] {
		p := s.pod(t, fmt.Sprint("guarded-", i), "1", func(p *corev1.Pod) { p.Spec.NodeName, p.Labels = name, map[string]string{"app": "guarded"} })
		env.EditStatus(t, s.shoot, p, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		})
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guarded"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}},
		},
	}
	create(t, s.shoot, budget)
	s.awaitStatus(t, "ready: 3", "candidates: 1") // only the third one
	s.clock.Step(2 * time.Hour)
	s.awaitReplicas(t, "worker", 2)
	env.EditStatus(t, s.shoot, budget, func(b *policyv1.PodDisruptionBudget) {
		b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 1, ExpectedPods: 2}
	})
	s.awaitStatus(t, "ready: 2", "candidates: 1")
	s.clock.Step(2 * time.Hour)
	s.awaitReplicas(t, "worker", 1)
	env.AwaitList(t, s.shoot, counts[*corev1.Pod](1), client.InNamespace("default"))
}

func counts[T client.Object](n int) func([]T) error {
	return func(objects []T) error {
		if len(objects) != n {
			return fmt.Errorf("%d instead of %d", len(objects), n)
		}
		return nil
	}
}

func scheduled(p *corev1.Pod) error {
	if p.Spec.NodeName == "" {
		return errors.New("it has no node")
	}
	return nil
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// manager is the Deployment without which the autoscaler does nothing. Its pods are played by playMachines.
func (s *site) manager() *appsv1.Deployment {
	labels := map[string]string{"app": "mcm"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: control, Name: "machine-controller-manager"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
	}
}

// group creates a MachineDeployment whose nodes have 4 CPUs and a label "pool".
func (s *site) group(t *testing.T, name string, replicas int32) {
	t.Helper()
	selector := map[string]string{"name": name}
	create(t, s.seed, &machinev1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Namespace: control, Name: name}, ProviderSpec: runtime.RawExtension{Raw: []byte(`{}`)},
		NodeTemplate: &machinev1alpha1.NodeTemplate{InstanceType: "large", Region: "local", Zone: "0", Capacity: capacity()},
	}, &machinev1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: control, Name: name},
		Spec: machinev1alpha1.MachineDeploymentSpec{
			Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: machinev1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector}, Spec: machinev1alpha1.MachineSpec{
				Class:        machinev1alpha1.ClassSpec{Kind: "MachineClass", Name: name},
				NodeTemplate: machinev1alpha1.NodeTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": name}}},
			}},
		},
	})
}

func capacity() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")}
}

// pod creates a pod of a ReplicaSet.
func (s *site) pod(t *testing.T, name, cpu string, change func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "many", UID: "many", Controller: new(true),
		}}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(0)), AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{
				Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
			}},
		},
	}
	if change != nil {
		change(p)
	}
	create(t, s.shoot, p)
	return p
}

func (s *site) deployment(t *testing.T, name string) *machinev1alpha1.MachineDeployment {
	t.Helper()
	return env.Await(t, s.seed, env.Named[*machinev1alpha1.MachineDeployment](control, name), env.Exists)
}

func (s *site) awaitReplicas(t *testing.T, name string, n int32) {
	t.Helper()
	env.Await(t, s.seed, env.Named[*machinev1alpha1.MachineDeployment](control, name), func(d *machinev1alpha1.MachineDeployment) error {
		if d.Spec.Replicas != n {
			return fmt.Errorf("%d replicas instead of %d", d.Spec.Replicas, n)
		}
		return nil
	})
}

// awaitStatus waits for the line of the whole cluster in the status for users.
func (s *site) awaitStatus(t *testing.T, texts ...string) {
	t.Helper()
	env.Await(t, s.shoot, env.Named[*corev1.ConfigMap]("kube-system", "cluster-autoscaler-status"), func(c *corev1.ConfigMap) error {
		wide, _, _ := strings.Cut(c.Data["status"], "nodeGroups:")
		for _, text := range texts {
			if !strings.Contains(wide, text) {
				return fmt.Errorf("no %q in %s", text, wide)
			}
		}
		return nil
	})
}

// playMachines creates and deletes machines as the machine-controller-manager does, and their nodes.
func (s *site) playMachines(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := s.seed.Watch(ctx, &machinev1alpha1.MachineDeploymentList{}, client.InNamespace(control))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		count := 0
		for event := range watch.ResultChan() {
			d, ok := event.Object.(*machinev1alpha1.MachineDeployment)
			if !ok {
				continue
			}
			if err := s.reconcile(ctx, d, &count); err != nil && ctx.Err() == nil {
				t.Errorf("machines of %s: %v", d.Name, err)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		watch.Stop()
		group.Wait()
	})
}

func (s *site) reconcile(ctx context.Context, d *machinev1alpha1.MachineDeployment, count *int) error {
	list := &machinev1alpha1.MachineList{}
	if err := s.seed.List(ctx, list, client.InNamespace(control), client.MatchingLabels{"name": d.Name}); err != nil {
		return err
	}
	for missing := int(d.Spec.Replicas) - len(list.Items); missing > 0; missing-- {
		*count++
		name := fmt.Sprintf("%s-%03d", d.Name, *count)
		machine := &machinev1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: control, Name: name, Labels: map[string]string{"name": d.Name, "node": name}}, Spec: d.Spec.Template.Spec,
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"pool": d.Name, corev1.LabelHostname: name, corev1.LabelInstanceTypeStable: "large",
		}}}
		if err := errors.Join(s.seed.Create(ctx, machine), s.shoot.Create(ctx, node)); err != nil {
			return err
		}
		node.Spec.Taints = nil // the API server adds one, which a controller removes when the node is ready
		if err := s.shoot.Update(ctx, node); err != nil {
			return err
		}
		node.Status = corev1.NodeStatus{
			Capacity: capacity(), Allocatable: capacity(), Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}
		if err := s.shoot.Status().Update(ctx, node); err != nil {
			return err
		}
	}
	surplus := len(list.Items) - int(d.Spec.Replicas)
	for i := range list.Items {
		machine := &list.Items[i]
		if surplus <= 0 {
			break
		}
		// Nothing else may be deleted: pods run there.
		if !strings.Contains(d.Annotations[machinev1alpha1.TriggerDeletionByMCM], machine.Name+"~") {
			continue
		}
		surplus--
		if err := errors.Join(s.seed.Delete(ctx, machine), s.shoot.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name}})); err != nil {
			return err
		}
	}
	if surplus > 0 {
		return fmt.Errorf("%d machines too many that nothing marks", surplus)
	}
	return nil
}

// schedule runs a kube-scheduler for the shoot.
func (s *site) schedule(t *testing.T, config *rest.Config) {
	t.Helper()
	create(t, s.shoot, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"c": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c"}},
		CurrentContext: "c",
	}, file); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, env.Program(t, "kubernetes", "kube-scheduler"), "--kubeconfig="+file, "--leader-elect=false", "--secure-port=0")
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
}

// run runs the autoscaler.
func (s *site) run(t *testing.T, seed, shoot *rest.Config) {
	t.Helper()
	o, err := clusterautoscaler.Parse([]string{
		"--address=", "--cloud-provider=mcm", "--stderrthreshold=info", "--skip-nodes-with-system-pods=false", "--skip-nodes-with-local-storage=false",
		"--expendable-pods-priority-cutoff=-10", "--balance-similar-node-groups=true", "--ignore-taint=node.gardener.cloud/critical-components-not-ready",
		"--nodes=1:5:" + control + ".worker", "--nodes=0:3:" + control + ".zero", "--expander=least-waste", "--scale-down-delay-after-add=1h",
		"--scale-down-unneeded-time=30m", "--scan-interval=1s", "--max-graceful-termination-sec=600",
		"--max-node-provision-time=1000h", // the API server's clock, which sets when nodes are created, is not ahead
	}, func(string) string { return "" }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), testr.NewWithOptions(t, testr.Options{Verbosity: 1})))
	done := make(chan error, 1)
	go func() {
		done <- clusterautoscaler.Run(ctx, o, clusterautoscaler.Clusters{Shoot: shoot, Control: seed, Namespace: control, Clock: s.clock}, newSimulator)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("process: %v", err)
		}
	})
}
