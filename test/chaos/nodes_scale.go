package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// crowd is a workload whose pods need a node each.
const crowd = "crowd"

// autoscale lets the cluster-autoscaler add two nodes for pods, and remove them when the pods are gone.
func (s *story) autoscale(ctx context.Context) (string, error) {
	idle := &metav1.Duration{Duration: 30 * time.Second}
	if err := s.change(ctx, func(spec *corev1beta1.ShootSpec) {
		worker(spec).Maximum = 4
		spec.Kubernetes.ClusterAutoscaler = &corev1beta1.ClusterAutoscaler{
			ScaleDownDelayAfterAdd: idle, ScaleDownUnneededTime: idle, IgnoreDaemonsetsUtilization: new(true),
		}
	}); err != nil {
		return "", err
	}
	if err := s.healthy(ctx); err != nil {
		return "", err
	}
	pods := twice(crowd)
	pods.Spec.Replicas = new(int32(4))
	template := &pods.Spec.Template
	template.Spec.NodeSelector, template.Spec.TopologySpreadConstraints = map[string]string{constants.WorkerPool: tested}, nil
	template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: template.Labels},
	}}}}
	begin := time.Now()
	if err := kube.Apply(ctx, s.inside, fieldOwner, pods); err != nil {
		return "", err
	}
	if err := s.deployed(ctx, crowd); err != nil {
		return "", err
	}
	added := time.Since(begin)
	if err := s.inside.Delete(ctx, pods, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return "", err
	}
	begin = time.Now()
	if err := s.pool(ctx, tested, 2, nil); err != nil {
		return "", err
	}
	note := fmt.Sprintf("two nodes more after %s, gone after %s", added.Round(time.Second), time.Since(begin).Round(time.Second))
	if err := s.change(ctx, func(spec *corev1beta1.ShootSpec) {
		worker(spec).Maximum = 2
		spec.Kubernetes.ClusterAutoscaler = nil
	}); err != nil {
		return "", err
	}
	return note, errors.Join(s.deployed(ctx, app), s.healthy(ctx))
}
