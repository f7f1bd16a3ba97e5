package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/env"
)

const (
	// limited is the default limit of a controller-manager: requests per second for each kind.
	limited = 50
	// unlimited is more than the API servers can handle, so that the controllers themselves are measured.
	unlimited = 10000
	// clients is how many clients create objects at the same time.
	clients = 16
)

var scenarios = map[string]func(context.Context, *bench) error{
	"projects":         func(ctx context.Context, b *bench) error { return b.projects(ctx, unlimited) },
	"projects-limited": func(ctx context.Context, b *bench) error { return b.projects(ctx, limited) },
	"one-project":      func(ctx context.Context, b *bench) error { return b.shoots(ctx, 1) },
	"many-projects":    func(ctx context.Context, b *bench) error { return b.shoots(ctx, b.spread) },
}

func scenarioNames() []string { return slices.Sorted(maps.Keys(scenarios)) }

// bench is a running scenario.
type bench struct {
	options
	*env.Env
	client   client.WithWatch
	dir      string
	progress io.Writer
	results  []result
}

func measure(ctx context.Context, o options, progress io.Writer) (results []result, err error) {
	scenario, ok := scenarios[o.scenario]
	if !ok {
		return nil, fmt.Errorf("unknown scenario %q; there are %v", o.scenario, scenarioNames())
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the directory for temporary files
	e, err := env.New(ctx, io.Discard, env.Lenient())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		return nil, err
	}
	b := &bench{options: o, Env: e, client: c, dir: dir, progress: progress}
	err = scenario(ctx, b)
	return b.results, err
}

// projects creates projects, all at once, while a controller-manager runs.
func (b *bench) projects(ctx context.Context, qps int) error {
	manager, err := b.start(ctx, qps)
	if err != nil {
		return err
	}
	defer manager.stop()
	if _, err := manager.settle(ctx); err != nil {
		return err
	}
	fmt.Fprintf(b.progress, "%s: creating %d projects\n", b.scenario, b.options.projects)
	started := time.Now()
	err = b.create(ctx, b.options.projects, func(i int) []client.Object {
		return []client.Object{&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}}}
	})
	if err != nil {
		return err
	}
	err = kube.Await(ctx, b.client, &corev1beta1.ProjectList{}, func(projects []*corev1beta1.Project) error {
		ready := 0
		for _, project := range projects {
			if project.Status.Phase == corev1beta1.ProjectReady {
				ready++
			}
		}
		if ready < b.options.projects {
			return fmt.Errorf("%d of %d projects are ready", ready, b.options.projects)
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	return b.report(manager, "all ready", time.Since(started)) //nolint:contextcheck // it reads files of the kernel
}

// shoots starts a controller-manager with many shoots: once for shoots that it has not reconciled yet, then again.
func (b *bench) shoots(ctx context.Context, projects int) error {
	fmt.Fprintf(b.progress, "%s: creating %d shoots\n", b.scenario, b.options.shoots)
	if err := b.create(ctx, projects, project); err != nil {
		return err
	}
	if err := b.create(ctx, b.options.shoots, func(i int) []client.Object { return shoot(fmt.Sprintf("garden-p%d", i%projects), i) }); err != nil {
		return err
	}
	for _, step := range []string{"first start", "restart"} {
		fmt.Fprintf(b.progress, "%s: %s\n", b.scenario, step)
		started := time.Now()
		manager, err := b.start(ctx, unlimited)
		if err != nil {
			return err
		}
		settled, err := manager.settle(ctx)
		if err == nil {
			err = b.report(manager, step, settled.Sub(started)) //nolint:contextcheck // it reads files of the kernel
		}
		if err = errors.Join(err, b.check(ctx), manager.profile(ctx, step)); err != nil {
			manager.stop()
			return err
		}
		manager.stop()
	}
	return nil
}

// check checks that the shoots were reconciled.
func (b *bench) check(ctx context.Context) error {
	shoots := &metav1.PartialObjectMetadataList{}
	shoots.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
	if err := b.client.List(ctx, shoots); err != nil {
		return err
	}
	for _, shoot := range shoots.Items {
		if shoot.Labels["shoot.gardener.cloud/status"] != "healthy" || len(shoot.Finalizers) != 1 {
			return fmt.Errorf("shoot %s has labels %v and finalizers %v", shoot.Name, shoot.Labels, shoot.Finalizers)
		}
	}
	return nil
}

func project(i int) []client.Object {
	name := fmt.Sprintf("garden-p%d", i)
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": fmt.Sprintf("p%d", i)},
		}},
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i)}, Spec: corev1beta1.ProjectSpec{Namespace: &name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "cloud"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "audit"}},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "cloud"}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: name, Name: "cloud"},
		},
	}
}

// shoot returns a shoot that refers to the credentials and the ConfigMap of its project.
func shoot(namespace string, i int) []client.Object {
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("s%d", i)},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, Region: "local", CredentialsBindingName: new("cloud"),
			Kubernetes: corev1beta1.Kubernetes{Version: "1.36.1", KubeAPIServer: &corev1beta1.KubeAPIServerConfig{
				AuditConfig: &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}}},
			}},
			Networking: &corev1beta1.Networking{Type: new("flannel"), Nodes: new("10.0.0.0/16")},
			Provider: corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{
				Name: "pool", Minimum: 1, Maximum: 1, MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
				Machine: corev1beta1.Machine{Type: "small", Image: &corev1beta1.ShootMachineImage{Name: "image", Version: new("1.0.0")}},
			}}},
		},
	}
	return []client.Object{shoot}
}

// create creates the objects that a function returns for each number below n.
func (b *bench) create(ctx context.Context, n int, objects func(int) []client.Object) error {
	var next atomic.Int64
	errs := make(chan error, clients)
	for range clients {
		go func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					errs <- nil
					return
				}
				for _, obj := range objects(i) {
					if err := b.client.Create(ctx, obj); err != nil {
						errs <- err
						return
					}
				}
			}
		}()
	}
	var err error
	for range clients {
		err = errors.Join(err, <-errs)
	}
	return err
}
