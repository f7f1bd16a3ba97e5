package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gateway"
)

// loadBalance sends the requests of a pod of a control plane through the gateway, which spreads them over the pods of kube-apiserver. Without what
// that needs, the pod stays as it is: the same names are those of the Service of kube-apiserver.
func loadBalance(ctx context.Context, live client.Reader, pod *corev1.Pod) error {
	if !slices.ContainsFunc(pod.Spec.Volumes, hasGenericKubeconfig) {
		return nil
	}
	configMap := &corev1.ConfigMap{}
	if found, err := read(ctx, live, pod.Namespace, gateway.LoadBalancingConfigMap, configMap); !found {
		return err
	}
	balancing, complete := gateway.LoadBalancingOf(configMap)
	if !complete {
		return nil
	}
	service := &corev1.Service{}
	if found, err := read(ctx, live, balancing.Namespace, gateway.InternalService, service); !found {
		return err
	}
	hosts := slices.DeleteFunc(balancing.Hosts, func(host string) bool { return hasAlias(pod, host) }) // the API server may call again
	addresses := gateway.InternalAddresses(service)
	if len(hosts) == 0 || len(addresses) == 0 {
		return nil
	}
	for _, address := range addresses {
		pod.Spec.HostAliases = append(pod.Spec.HostAliases, corev1.HostAlias{IP: address, Hostnames: hosts})
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, gateway.InternalPolicyLabel(), constants.NetworkPolicyAllowed)
	return nil
}

// read reads an object. It is false without an error if there is none.
func read(ctx context.Context, from client.Reader, namespace, name string, object client.Object) (found bool, err error) {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	err = from.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %q: %w", object, key, err)
	}
	return true, nil
}

// hasGenericKubeconfig says whether a volume has the kubeconfig that pods of a control plane share.
func hasGenericKubeconfig(volume corev1.Volume) bool {
	if volume.Secret != nil && isGenericKubeconfig(volume.Secret.SecretName) {
		return true
	}
	return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
		return source.Secret != nil && isGenericKubeconfig(source.Secret.Name)
	})
}

// isGenericKubeconfig says whether a Secret has it. Its name has a suffix, which changes with the content.
func isGenericKubeconfig(secret string) bool {
	return strings.HasPrefix(secret, constants.SecretNameGenericTokenKubeconfig)
}

func hasAlias(pod *corev1.Pod, host string) bool {
	return slices.ContainsFunc(pod.Spec.HostAliases, func(alias corev1.HostAlias) bool { return slices.Contains(alias.Hostnames, host) })
}
