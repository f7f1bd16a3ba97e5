package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/test/e2e/serverimage"
)

const (
	// elastic is the pool that the pods are for, empty one that begins without a node.
	elastic, empty = "elastic", "empty"
	// share is the part of a processor that a pod requests: about 15 pods fit on a node of two processors.
	share = "120m"
)

// run creates the shoot, measures, and deletes the shoot.
func (b *bench) run(ctx context.Context) (err error) {
	shoot, err := b.shoot()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "create shoot %s\n", client.ObjectKeyFromObject(shoot))
	if err := b.garden.Create(ctx, shoot); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.remove(context.WithoutCancel(ctx), shoot)) }()
	key := client.ObjectKeyFromObject(shoot)
	if err := b.limited(ctx, func(ctx context.Context) error { return kube.AwaitShoot(ctx, b.garden, key, kube.ShootHealthy, nil) }); err != nil {
		return err
	}
	inside, err := b.inside(ctx, key)
	if err != nil {
		return err
	}
	o := observe(ctx, inside)
	err = b.measure(ctx, inside, o)
	return errors.Join(err, o.stop(), b.draw(o))
}

// shoot is the one of the manifest with two pools, of which one begins without a node.
func (b *bench) shoot() (*corev1beta1.Shoot, error) {
	data, err := os.ReadFile(b.manifest)
	if err != nil {
		return nil, err
	}
	shoot := &corev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict(data, shoot); err != nil {
		return nil, fmt.Errorf("read %s: %w", b.manifest, err)
	}
	if len(shoot.Spec.Provider.Workers) == 0 {
		return nil, fmt.Errorf("the shoot of %s has no worker pool", b.manifest)
	}
	shoot.Name = b.name
	first := shoot.Spec.Provider.Workers[0]
	first.Name, first.Minimum, first.Maximum = elastic, 1, int32(b.maximum) //nolint:gosec // a few
	second := *first.DeepCopy()
	second.Name, second.Minimum, second.Maximum = empty, 0, 1
	second.Taints = []corev1.Taint{{Key: empty, Effect: corev1.TaintEffectNoSchedule}}
	second.SystemComponents = &corev1beta1.WorkerSystemComponents{Allow: false}
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{first, second}
	seconds := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	shoot.Spec.Kubernetes.ClusterAutoscaler = &corev1beta1.ClusterAutoscaler{
		ScaleDownDelayAfterAdd: seconds(b.unneeded), ScaleDownUnneededTime: seconds(b.unneeded), ScanInterval: seconds(10 * time.Second),
		MaxScaleDownParallelism: new(int32(10)), IgnoreDaemonsetsUtilization: new(true),
	}
	return shoot, nil
}

func (b *bench) inside(ctx context.Context, key client.ObjectKey) (client.WithWatch, error) {
	image, err := serverimage.Build(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := b.l.Push(ctx, serverimage.Reference, image); err != nil {
		return nil, err
	}
	file, err := b.l.ShootKubeconfig(ctx, landscape.Access{Shoot: key, Expiration: 2 * time.Hour})
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{})
}

// measure prints how long each step takes.
func (b *bench) measure(ctx context.Context, inside client.WithWatch, o *observer) error {
	load, one := b.deployment("load", elastic, b.pods), b.deployment("one", empty, 1)
	create := func(d *appsv1.Deployment) func(context.Context) error {
		return func(ctx context.Context) error { return inside.Create(ctx, d) }
	}
	remove := func(d *appsv1.Deployment) func(context.Context) error {
		return func(ctx context.Context) error { return inside.Delete(ctx, d) }
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
		done func(state) bool
	}{
		{fmt.Sprintf("%d pods are created, until all run", b.pods), create(load), func(s state) bool { return s.running == b.pods }},
		{"they are deleted, until one node is left", remove(load), func(s state) bool { return s.pods == 0 && s.nodes == 1 }},
		{"a pod for a pool without a node is created, until it runs", create(one), func(s state) bool { return s.running == 1 }},
		{"it is deleted, until the node has gone", remove(one), func(s state) bool { return s.pods == 0 && s.nodes == 1 }},
	} {
		begin := time.Now()
		o.mark(step.name)
		most := 0
		err := b.limited(ctx, func(ctx context.Context) error {
			if err := step.do(ctx); err != nil {
				return err
			}
			return o.await(ctx, func(s state) bool {
				most = max(most, s.nodes)
				return step.done(s)
			})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%-60s %7.1f s, at most %d nodes\n", step.name, time.Since(begin).Seconds(), most)
	}
	return nil
}

// deployment is a number of pods for a pool.
func (b *bench) deployment(name, pool string, replicas int) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(replicas)), //nolint:gosec // a few
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			NodeSelector:                  map[string]string{constants.WorkerPool: pool},
			Tolerations:                   []corev1.Toleration{{Key: empty, Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "server", Image: serverimage.Reference, Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(share), corev1.ResourceMemory: resource.MustParse("10Mi")},
				},
			}},
		}},
	}}
}

func (b *bench) limited(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	return do(ctx)
}

// remove deletes the shoot.
func (b *bench) remove(ctx context.Context, shoot *corev1beta1.Shoot) error {
	return b.limited(ctx, func(ctx context.Context) error {
		key := client.ObjectKeyFromObject(shoot)
		fmt.Fprintf(os.Stderr, "delete shoot %s\n", key)
		if err := kube.DeleteShoot(ctx, b.garden, key); err != nil {
			return err
		}
		return kube.AwaitShoot(ctx, b.garden, key, kube.ShootGone, nil)
	})
}

func (b *bench) draw(o *observer) error {
	if b.picture == "" || len(o.states) == 0 {
		return nil
	}
	var out bytes.Buffer
	title := fmt.Sprintf("%d pods in a pool of 1 to %d nodes", b.pods, b.maximum)
	if err := drawing(title, o.states, o.marks).SVG(&out); err != nil {
		return err
	}
	return os.WriteFile(b.picture, out.Bytes(), 0o644)
}
