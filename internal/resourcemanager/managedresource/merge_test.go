package managedresource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/yaml"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct {
		desired, live, want string
	}{
		"a token stays in its Secret": {
			desired: `{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token, data: {own: eA==}}`,
			live:    `{apiVersion: v1, kind: Secret, metadata: {name: a, uid: u}, type: kubernetes.io/service-account-token, data: {token: dA==, ca.crt: Yw==, namespace: bg==, odd: eA==}}`,
			want:    `{apiVersion: v1, kind: Secret, metadata: {name: a, uid: u}, type: kubernetes.io/service-account-token, data: {token: dA==, ca.crt: Yw==, namespace: bg==, own: eA==}}`,
		},
		"the rules of an aggregated ClusterRole": {
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: null}`,
			live:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: []}, rules: [{verbs: [get]}]}`,
			want:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}, rules: [{verbs: [get]}]}`,
		},
		"the token of a Secret for the token requestor": {
			desired: `{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {resources.gardener.cloud/purpose: token-requestor}}}`,
			live:    `{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {resources.gardener.cloud/purpose: token-requestor}, annotations: {serviceaccount.resources.gardener.cloud/token-renew-timestamp: later}}, data: {token: dA==, odd: eA==}}`,
			want:    `{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {resources.gardener.cloud/purpose: token-requestor}, annotations: {serviceaccount.resources.gardener.cloud/token-renew-timestamp: later}}, data: {token: dA==}}`,
		},
		"the pods of a Job from before they had the label": {
			desired: `{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {template: {metadata: {labels: {own: a, resources.gardener.cloud/managed-by: gardener}}}}}`,
			live:    `{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {template: {metadata: {labels: {own: a, controller-uid: u}}}}}`,
			want:    `{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {template: {metadata: {labels: {own: a, controller-uid: u}}}}}`,
		},
		"replicas that the manifest leaves open": {
			desired: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {minReadySeconds: 5}}`,
			live:    `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 4, minReadySeconds: 3}}`,
			want:    `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 4, minReadySeconds: 5}}`,
		},
		"replicas that the manifest has": {
			desired: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 1}}`,
			live:    `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 4}}`,
			want:    `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 1}}`,
		},
		"the CA bundle of a conversion": {
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: u}}}}}`,
			live:    `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: v, caBundle: Yw==}}}}}`,
			want:    `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: u, caBundle: Yw==}}}}}`,
		},
		"a conversion that the manifest no longer has": {
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {scope: Cluster}}`,
			live:    `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {scope: Cluster, conversion: {strategy: Webhook, webhook: {clientConfig: {url: v, caBundle: Yw==}}}}}`,
			want:    `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {scope: Cluster}}`,
		},
		"a conversion that is none any more": {
			desired: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {strategy: None}}}`,
			live:    `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {url: v, caBundle: Yw==}}}}}`,
			want:    `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {strategy: None}}}`,
		},
		"the address that a controller has allocated for a load balancer": {
			desired: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}}`,
			live:    `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, loadBalancerIP: 10.0.0.7}}`,
			want:    `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, loadBalancerIP: 10.0.0.7}}`,
		},
		"an address for a load balancer that the manifest has": {
			desired: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, loadBalancerIP: 10.0.0.8}}`,
			live:    `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, loadBalancerIP: 10.0.0.7}}`,
			want:    `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, loadBalancerIP: 10.0.0.8}}`,
		},
		"the address of a Service that is no load balancer any more": {
			desired: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}}`,
			live:    `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, loadBalancerIP: 10.0.0.7}}`,
			want:    `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}}`,
		},
		"the resources of a CronJob": {
			desired: `{apiVersion: batch/v1, kind: CronJob, metadata: {annotations: {resources.gardener.cloud/preserve-resources: "true"}}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: new}]}}}}}}`,
			live:    `{apiVersion: batch/v1, kind: CronJob, metadata: {}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: old, resources: {requests: {cpu: 2}}}]}}}}}}`,
			want:    `{apiVersion: batch/v1, kind: CronJob, metadata: {annotations: {resources.gardener.cloud/preserve-resources: "true"}}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: new, resources: {requests: {cpu: 2}}}]}}}}}}`,
		},
		"the resources of a Job": {
			desired: `{apiVersion: batch/v1, kind: Job, metadata: {annotations: {resources.gardener.cloud/preserve-resources: "true"}}, spec: {manualSelector: true, template: {spec: {containers: [{name: a}]}}}}`,
			live:    `{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {manualSelector: true, template: {spec: {containers: [{name: a, resources: {requests: {cpu: 2}}}]}}}}`,
			want:    `{apiVersion: batch/v1, kind: Job, metadata: {annotations: {resources.gardener.cloud/preserve-resources: "true"}}, spec: {manualSelector: true, template: {spec: {containers: [{name: a, resources: {requests: {cpu: 2}}}]}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := merge(parse(t, tc.desired), parse(t, tc.live), before{}, mergeOptions{})
			want := parse(t, tc.want)
			delete(want.Object, "metadata")
			delete(got.Object, "metadata")
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("merge() (-want +got):\n%s", diff)
			}
		})
	}
}

func reference(namespace string, labels ...string) resourcesv1alpha1.ObjectReference {
	ref := resourcesv1alpha1.ObjectReference{
		ObjectReference: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "a"}, Labels: map[string]string{},
	}
	for _, label := range labels {
		ref.Labels[label] = "x"
	}
	return ref
}

// TestLabelsOfFailedAttempts is about a label that was added and removed in manifests whose other objects could not be applied.
func TestLabelsOfFailedAttempts(t *testing.T) {
	got := withBefore([]resourcesv1alpha1.ObjectReference{reference("n", "new", "both")}, []resourcesv1alpha1.ObjectReference{reference("n", "both", "old")})
	if diff := cmp.Diff(map[string]string{"old": "x", "both": "x", "new": "x"}, got[0].Labels); diff != "" {
		t.Errorf("labels that are removed when they are not desired (-want +got):\n%s", diff)
	}
}

// TestNamespaceOfAnUnknownKind is about objects whose kind is not in discovery for a while. They must not be mistaken for others, and
// deleted.
func TestNamespaceOfAnUnknownKind(t *testing.T) {
	for name, tc := range map[string]struct {
		manifest string
		before   []resourcesv1alpha1.ObjectReference
		want     string
	}{
		"never applied":      {manifest: "n", want: "n"},
		"as it was":          {manifest: "n", before: []resourcesv1alpha1.ObjectReference{reference("n")}, want: "n"},
		"it was the default": {before: []resourcesv1alpha1.ObjectReference{reference("default")}, want: "default"},
		"cluster-scoped, with a namespace in the manifest": {manifest: "n", before: []resourcesv1alpha1.ObjectReference{reference("")}},
		"another object of this name is another object":    {manifest: "n", before: []resourcesv1alpha1.ObjectReference{reference("m")}, want: "n"},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
			object.SetNamespace(tc.manifest)
			if got := namespaceBefore(object, tc.before); got != tc.want {
				t.Errorf("namespaceBefore() = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestRecreatedWhileWatchIsInterrupted is about an object that was recreated while a watch was interrupted: the event is an update.
func TestRecreatedWhileWatchIsInterrupted(t *testing.T) {
	object := func(uid string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Generation: 1}}
	}
	if changed := metadataChanged(); !changed.Update(event.UpdateEvent{ObjectOld: object("1"), ObjectNew: object("2")}) || changed.Update(event.UpdateEvent{ObjectOld: object("1"), ObjectNew: object("1")}) {
		t.Error("another UID is a change, and the same object is none")
	}
}
