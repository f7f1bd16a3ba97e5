//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube"
)

// hasIPv6 reports whether pods of the landscape have IPv6 addresses. They do where the kernel has IPv6.
func (l *landscape) hasIPv6(t *testing.T) bool {
	t.Helper()
	return len(l.node(t, "runtime-0").Spec.PodCIDRs) > 1
}

// addIPv6 adds IPv6 to a shoot with nodes of IPv4, which stay as they are until they are replaced.
func addIPv6(t *testing.T, l *landscape, key client.ObjectKey) {
	l.patchShoot(t, key, `{"spec":{"networking":{"ipFamilies":["IPv4","IPv6"]}}}`)
	l.awaitShoot(t, key, func(shoot *corev1beta1.Shoot) error {
		if err := kube.ShootHealthy(shoot); err != nil {
			return err
		}
		for _, constraint := range shoot.Status.Constraints {
			if constraint.Type == corev1beta1.ShootDualStackNodesMigrationReady && constraint.Status == corev1beta1.ConditionFalse {
				return nil
			}
		}
		return fmt.Errorf("no constraint says that nodes have one IP family")
	})
}

// testDualStack expects that pods on two nodes of a shoot reach each other by IPv6, directly and through a Service, and that names have both addresses.
func testDualStack(t *testing.T, l *landscape, key client.ObjectKey) {
	shoot := &corev1beta1.Shoot{}
	if err := l.garden.client.Get(t.Context(), key, shoot); err != nil {
		t.Fatal(err)
	}
	before := shoot.DeepCopy()
	shoot.Spec.Provider.Workers[0].Minimum, shoot.Spec.Provider.Workers[0].Maximum = 2, 2
	if err := l.garden.client.Patch(t.Context(), shoot, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	l.awaitShoot(t, key, kube.ShootHealthy)
	c := l.shoot(t, key)

	const name = "both"
	server, meta := serverDeployment(name).Spec, metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
	if err := kube.Apply(t.Context(), c.client, "e2e",
		&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: server.Selector, Template: server.Template}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack), Selector: server.Selector.MatchLabels,
			Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt(8080)}},
		}}); err != nil {
		t.Fatal(err)
	}
	twoAddresses := func(want int, labels client.MatchingLabels, options ...client.ListOption) (found []*corev1.Pod) {
		await(t, c.client, func(pods []*corev1.Pod) error {
			pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
			for _, pod := range pods {
				if err := kube.PodReady(pod); err != nil {
					return err
				}
				if len(pod.Status.PodIPs) != 2 {
					return fmt.Errorf("pod %s has the addresses %v", pod.Name, pod.Status.PodIPs)
				}
			}
			if len(pods) != want {
				return fmt.Errorf("there are %d pods", len(pods))
			}
			found = pods
			return nil
		}, append(options, labels)...)
		return found
	}
	pods := twoAddresses(2, server.Selector.MatchLabels)
	twoAddresses(2, client.MatchingLabels{"k8s-app": "kube-dns"}, client.InNamespace(metav1.NamespaceSystem))
	service := &corev1.Service{}
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: meta.Namespace, Name: name}, service); err != nil {
		t.Fatal(err)
	}
	ask := func(pod, path, key, value, want string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			got, err := c.clientset.CoreV1().Pods(meta.Namespace).ProxyGet("http", pod, "8080", path, map[string]string{key: value}).DoRaw(ctx)
			if err == nil && !strings.HasPrefix(string(got), want) {
				err = fmt.Errorf("%s of %s is %q, want %q", path, value, got, want)
			}
			return err
		})
	}
	for i, pod := range pods {
		other := pods[1-i]
		ask(pod.Name, "/fetch", "url", "http://"+net.JoinHostPort(other.Status.PodIPs[1].IP, "8080")+"/hostname", other.Name)
		ask(pod.Name, "/fetch", "url", "http://"+net.JoinHostPort(service.Spec.ClusterIPs[1], "80")+"/hostname", name+"-")
		ask(pod.Name, "/resolve", "name", name, "["+strings.Join(service.Spec.ClusterIPs, " ")+"]")
	}
}
