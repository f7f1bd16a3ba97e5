// Package webhook has the admission webhooks of gardener-resource-manager, which the API server of the target cluster calls.
//
// They read the object, its namespace and a few cached objects of the target cluster, and write nothing.
// Source: concepts.txt, Gardener Resource Manager, "Webhooks".
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	component "gardener.cloud/gardener/internal/component/resourcemanager"
)

// Add adds the enabled webhooks to the server of a manager, which every replica runs.
func Add(mgr manager.Manager, targetCluster cluster.Cluster, c *resourcemanagerconfigv1alpha1.ResourceManagerWebhookConfiguration) {
	target := reader{targetCluster.GetClient(), targetCluster.GetAPIReader()}
	register := func(path string, handler admission.HandlerFunc) {
		mgr.GetWebhookServer().Register(path, &admission.Webhook{Handler: handler}) // the server starts with the first webhook
	}
	pods := func(enabled bool, path string, mutate func(context.Context, *corev1.Pod) error) {
		if enabled {
			register(path, mutatePod(mutate))
		}
	}
	if c.HighAvailabilityConfig.Enabled {
		register(component.PathHighAvailability, (&highAvailability{
			target:      target,
			notReady:    c.HighAvailabilityConfig.DefaultNotReadyTolerationSeconds,
			unreachable: c.HighAvailabilityConfig.DefaultUnreachableTolerationSeconds,
		}).handle)
	}
	pods(c.KubernetesServiceHost.Enabled, component.PathKubernetesServiceHost, func(_ context.Context, pod *corev1.Pod) error {
		setServiceHost(pod, c.KubernetesServiceHost.Host)
		return nil
	})
	pods(c.PodKubeAPIServerLoadBalancing.Enabled, component.PathLoadBalancing, func(ctx context.Context, pod *corev1.Pod) error {
		// No cache: few pods ask, and it would have all ConfigMaps of the cluster.
		return loadBalance(ctx, targetCluster.GetAPIReader(), pod)
	})
	pods(c.ProjectedTokenMount.Enabled, component.PathProjectedToken, func(ctx context.Context, pod *corev1.Pod) error {
		return mountToken(ctx, target, pod, ptr.Deref(c.ProjectedTokenMount.ExpirationSeconds, defaultTokenSeconds))
	})
	pods(c.PodTopologySpreadConstraints.Enabled, component.PathTopologySpread, func(_ context.Context, pod *corev1.Pod) error {
		spreadTemplate(pod)
		return nil
	})
	pods(c.SystemComponentsConfig.Enabled, component.PathSystemComponents, func(ctx context.Context, pod *corev1.Pod) error {
		return placeSystemComponent(ctx, target, pod, c.SystemComponentsConfig)
	})
	pods(c.SeccompProfile.Enabled, component.PathSeccompProfile, func(_ context.Context, pod *corev1.Pod) error {
		setSeccompProfile(pod)
		return nil
	})
	pods(c.PodSchedulerName.Enabled, component.PathSchedulerName, func(_ context.Context, pod *corev1.Pod) error {
		if pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
			pod.Spec.SchedulerName = ptr.Deref(c.PodSchedulerName.SchedulerName, corev1.DefaultSchedulerName)
		}
		return nil
	})
	if c.TokenInvalidator.Enabled {
		register(component.PathInvalidateToken, invalidateToken)
	}
	if c.EndpointSliceHints.Enabled {
		register(component.PathEndpointSliceHints, hintZones)
	}
	if c.VPAInPlaceUpdates.Enabled {
		register(component.PathUpdateInPlace, updateInPlace)
	}
	if c.CRDDeletionProtection.Enabled {
		register(component.PathDeletionProtection, protect)
	}
	if c.ExtensionValidation.Enabled {
		for path, handler := range validators() {
			register(path, handler)
		}
	}
	if c.NodeAgentAuthorizer.Enabled {
		// This one is for authorization, not for admission.
		mgr.GetWebhookServer().Register(component.PathNodeAgentAuthorizer, &nodeAgents{
			source: reader{mgr.GetClient(), mgr.GetAPIReader()}, machineNamespace: ptr.Deref(c.NodeAgentAuthorizer.MachineNamespace, ""), target: target,
			targetAPI: targetCluster.GetAPIReader(),
		})
	}
}

// mutatePod returns a handler that mutates new pods.
func mutatePod(mutate func(context.Context, *corev1.Pod) error) admission.HandlerFunc {
	return func(ctx context.Context, request admission.Request) admission.Response {
		pod := &corev1.Pod{}
		return change(request, pod, func() error {
			if pod.Namespace == "" {
				pod.Namespace = request.Namespace // the API server sets it later
				defer func() { pod.Namespace = "" }()
			}
			return mutate(ctx, pod)
		})
	}
}

// change decodes the object of a request, mutates it, and returns the difference as a patch. Unknown fields are not changed.
func change(request admission.Request, object runtime.Object, mutate func() error) admission.Response {
	if request.SubResource != "" || request.Operation == admissionv1.Delete {
		return admission.Allowed("")
	}
	if err := json.Unmarshal(request.Object.Raw, object); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode the object: %w", err))
	}
	before, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if err := mutate(); err != nil {
		if invalid := new(invalidError); errors.As(err, &invalid) {
			return admission.Errored(http.StatusUnprocessableEntity, err)
		}
		return admission.Errored(http.StatusInternalServerError, err)
	}
	after, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(before, after)
}

// invalidError says that the object has to be corrected by its author.
type invalidError struct{ error }

// containersOf returns pointers to all containers of a pod.
func containersOf(spec *corev1.PodSpec) []*corev1.Container {
	var all []*corev1.Container
	for i := range spec.InitContainers {
		all = append(all, &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		all = append(all, &spec.Containers[i])
	}
	return all
}

// reader reads objects of the target cluster from a cache, and those that it does not have yet from the API server.
type reader struct {
	client.Reader
	live client.Reader
}

// Get implements client.Reader.
func (r reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, object, options...)
	if apierrors.IsNotFound(err) {
		return r.live.Get(ctx, key, object, options...)
	}
	return err
}
