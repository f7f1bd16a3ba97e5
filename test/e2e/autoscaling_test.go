//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// testAutoscaling runs pods of which a node takes one. A node comes for those that none is left for, and goes when they have gone. Then the pool gets a fixed
// size, and the cluster-autoscaler goes.
func testAutoscaling(t *testing.T, l *landscape, key client.ObjectKey, c cluster) {
	shoot, nodes := &corev1beta1.Shoot{}, &corev1.NodeList{}
	if err := errors.Join(l.garden.client.Get(t.Context(), key, shoot), c.client.List(t.Context(), nodes)); err != nil {
		t.Fatal(err)
	}
	fixed := shoot.Spec.Provider.Workers
	begin := len(nodes.Items)
	seconds := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Second} }
	elastic := shoot.DeepCopy().Spec.Provider.Workers
	elastic[0].Minimum, elastic[0].Maximum = int32(begin), int32(begin)+2 //nolint:gosec // a few
	l.patchWorkers(t, key, elastic, &corev1beta1.ClusterAutoscaler{
		ScaleDownDelayAfterAdd: seconds(1), ScaleDownUnneededTime: seconds(5), ScanInterval: seconds(5), IgnoreDaemonsetsUtilization: new(true), Verbosity: new(int32(4)),
	})
	l.awaitShoot(t, key, kube.ShootHealthy)
	autoscaler := client.ObjectKey{Namespace: shoot.Status.TechnicalID, Name: "cluster-autoscaler"}
	await(t, l.client, func(found []*appsv1.Deployment) error {
		if len(found) == 0 {
			return errors.New("there is no cluster-autoscaler")
		}
		return kube.DeploymentComplete(found[0])
	}, client.InNamespace(autoscaler.Namespace), client.MatchingFields{"metadata.name": autoscaler.Name})

	spread := serverDeployment("spread")
	spread.Spec.Replicas = new(elastic[0].Minimum + 1)
	spread.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: spread.Spec.Selector, TopologyKey: corev1.LabelHostname,
		}},
	}}
	start := time.Now()
	if err := c.client.Create(t.Context(), spread); err != nil {
		t.Fatal(err)
	}
	c.awaitDeployment(t, "spread")
	t.Logf("pods run after %s", time.Since(start).Round(time.Second))
	c.awaitNodes(t, begin+1)
	// An event that could not be written at once is written some seconds later.
	eventually(t, func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := c.client.List(ctx, events); err != nil {
			return err
		}
		var others []string
		for _, e := range events.Items {
			if e.Source.Component != "cluster-autoscaler" {
				continue
			}
			text := fmt.Sprintf("%s %s/%s: %s", e.Reason, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Message)
			if e.Reason == "TriggeredScaleUp" {
				t.Log(text)
				return nil
			}
			others = append(others, text)
		}
		return fmt.Errorf("no pod has an event that says that a node comes for it; other events of the cluster-autoscaler: %q", others)
	})
	status := &corev1.ConfigMap{}
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "cluster-autoscaler-status"}, status); err != nil || status.Data["status"] == "" {
		t.Errorf("the status is %v, %v", status.Data, err)
	}

	start = time.Now()
	if err := c.client.Delete(t.Context(), spread); err != nil {
		t.Fatal(err)
	}
	c.awaitNodes(t, begin)
	t.Logf("the node has gone after %s", time.Since(start).Round(time.Second))
	await(t, l.client, func(machines []*machinev1alpha1.Machine) error {
		if len(machines) != begin {
			return fmt.Errorf("there are %d machines, want %d", len(machines), begin)
		}
		return nil
	}, client.InNamespace(autoscaler.Namespace))

	for i := range fixed {
		fixed[i].Minimum, fixed[i].Maximum = elastic[i].Minimum, elastic[i].Minimum
	}
	l.patchWorkers(t, key, fixed, nil)
	l.awaitShoot(t, key, kube.ShootHealthy)
	if err := l.client.Get(t.Context(), autoscaler, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the cluster-autoscaler of a pool with a fixed size: %v, want it to be deleted", err)
	}
	eventually(t, func(ctx context.Context) error {
		role := client.ObjectKey{Name: "gardener.cloud:target:cluster-autoscaler"}
		if err := c.client.Get(ctx, role, &rbacv1.ClusterRole{}); err == nil {
			return errors.New("its permissions in the shoot are there still")
		} else if !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
}

// patchWorkers changes the worker pools of a shoot, and the settings of its cluster-autoscaler.
func (l *landscape) patchWorkers(t *testing.T, key client.ObjectKey, workers []corev1beta1.Worker, config *corev1beta1.ClusterAutoscaler) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"provider": map[string]any{"workers": workers}, "kubernetes": map[string]any{"clusterAutoscaler": config},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l.patchShoot(t, key, string(patch))
}

// awaitNodes waits until there is a number of nodes, all of them ready.
func (c cluster) awaitNodes(t *testing.T, want int) {
	t.Helper()
	await(t, c.client, func(nodes []*corev1.Node) error {
		if len(nodes) != want {
			return fmt.Errorf("there are %d nodes, want %d", len(nodes), want)
		}
		for _, node := range nodes {
			if err := kube.NodeReady(node); err != nil {
				return err
			}
		}
		return nil
	}, client.InNamespace(""))
}
