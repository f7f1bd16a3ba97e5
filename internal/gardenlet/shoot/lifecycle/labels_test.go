package lifecycle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/stage/usercredential"
)

// Extensions, tools and tests of the original project find objects by their names and labels. The table has what the compatibility facts say of
// them (nodes-and-autoscaling.md section 5, observability.md, admission-controller.md); "*" is any value.
func TestLabelsThatToolsLookFor(t *testing.T) {
	logf.SetLogger(logr.Discard())
	const namespace, project = "shoot--dev--crazy-botany", "garden-dev"
	l, o := newLandscape(t), complete(workers)
	o.Seed.Spec.Provider.Type, o.CloudProvider = "local", &usercredential.Credential{Kind: usercredential.Secret}
	o.Issuer = "https://keys.example.com/projects/dev/shoots/1/issuer"
	l.run(t, (*reconciler).reconcileFlow, o, -1)

	type labels map[string]string
	merge := func(all ...labels) labels {
		out := labels{}
		for _, l := range all {
			maps.Copy(out, l)
		}
		return out
	}
	role := func(value string) labels { return labels{"gardener.cloud/role": value} }
	// mutated is what control plane webhooks of extensions select.
	mutated := labels{"provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true"}
	// pool is for webhooks of container runtimes.
	pool := labels{"worker.gardener.cloud/pool": "*", "containerruntime.worker.gardener.cloud/sandbox": "true"}
	exposed := labels{"core.gardener.cloud/apiserver-exposure": "gardener-managed"}
	component := func(name, kind string) labels {
		return merge(role("controlplane"), mutated, labels{"app": "kubernetes", "role": name, "high-availability-config.resources.gardener.cloud/type": kind})
	}
	generated := func(name string) labels {
		return labels{
			"name": name, "managed-by": "secrets-manager", "manager-identity": "gardenlet", "issued-at-time": "*", "checksum-of-config": "*",
			"last-rotation-initiation-time": "",
		}
	}
	persisted, valid := labels{"persist": "true"}, labels{"valid-until-time": "*"}
	published := func(what string) labels {
		return merge(role(what), labels{"shoot.gardener.cloud/name": "crazy-botany", "shoot.gardener.cloud/uid": "1"})
	}
	restricted, token := labels{"gardener.cloud/update-restriction": "true"}, labels{"resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"}

	for _, want := range []struct {
		cluster client.Client
		list    client.ObjectList
		// namespace and name are regular expressions.
		namespace, name string
		labels          labels
		annotations     labels
	}{
		{l.seed, &corev1.NamespaceList{}, "", namespace, merge(role("shoot"), labels{
			"seed.gardener.cloud/provider": "local", "shoot.gardener.cloud/provider": "local", "backup.gardener.cloud/provider": "local",
			"networking.shoot.gardener.cloud/provider": "local",
			"pod-security.kubernetes.io/enforce":       "privileged", "high-availability-config.resources.gardener.cloud/consider": "true",
			"extensions.gardener.cloud/usual": "true", "containerruntime.worker.gardener.cloud/sandbox": "true",
		}), labels{"shoot.gardener.cloud/uid": "1", "high-availability-config.resources.gardener.cloud/failure-tolerance-type": ""}},

		// With the exposure, webhooks of extensions from before there was a gateway leave the kube-apiserver as it is.
		{l.seed, &appsv1.DeploymentList{}, namespace, "kube-apiserver", merge(component("apiserver", "server"), exposed), nil},
		{l.seed, &corev1.ServiceList{}, namespace, "kube-apiserver", merge(role("controlplane"), exposed), nil},
		{l.seed, &appsv1.DeploymentList{}, namespace, "kube-controller-manager", component("controller-manager", "controller"), nil},
		{l.seed, &appsv1.DeploymentList{}, namespace, "kube-scheduler", component("scheduler", "controller"), nil},
		{l.seed, &appsv1.DeploymentList{}, namespace, "vpn-seed-server", merge(role("controlplane"), mutated), nil},
		{l.seed, &extensionsv1alpha1.OperatingSystemConfigList{}, namespace, ".+-init", merge(mutated, pool), nil},
		{l.seed, &extensionsv1alpha1.OperatingSystemConfigList{}, namespace, ".+-original", merge(mutated, pool), nil},

		{l.seed, &corev1.SecretList{}, namespace, "ca-[0-9a-f]+", merge(generated("ca"), persisted, valid), nil},
		{l.seed, &corev1.SecretList{}, namespace, "ca-client-[0-9a-f]+", merge(generated("ca-client"), persisted, valid), nil},
		{l.seed, &corev1.SecretList{}, namespace, "ca-bundle-.+", labels{"managed-by": "secrets-manager", "manager-identity": "gardenlet", "bundle-for": "ca"}, nil},
		{l.seed, &corev1.SecretList{}, namespace, "etcd-client-.+", merge(generated("etcd-client"), valid, labels{"checksum-of-signing-ca": "*"}), nil},
		{l.seed, &corev1.SecretList{}, namespace, "service-account-key-[0-9a-f]+", merge(generated("service-account-key"), persisted), nil},
		{l.seed, &corev1.SecretList{}, namespace, "kube-apiserver-etcd-encryption-key-[0-9a-f]+", merge(generated("kube-apiserver-etcd-encryption-key"), persisted), nil},
		{l.seed, &corev1.SecretList{}, namespace, "observability-ingress-users-.+", merge(generated("observability-ingress-users"), persisted), nil},
		{l.seed, &corev1.SecretList{}, namespace, "generic-token-kubeconfig-.+", generated("generic-token-kubeconfig"), nil},
		{l.seed, &corev1.SecretList{}, namespace, "kube-apiserver-etcd-encryption-configuration-.+", labels{
			"role": "kube-apiserver-etcd-encryption-configuration", "resources.gardener.cloud/garbage-collectable-reference": "true",
		}, nil},
		{l.seed, &corev1.SecretList{}, namespace, "shoot-access-kube-controller-manager", token, nil},
		{l.seed, &corev1.SecretList{}, namespace, "shoot-access-gardener-resource-manager", token, nil},
		{l.seed, &corev1.SecretList{}, namespace, "cloudprovider", labels{"gardener.cloud/purpose": "cloudprovider"}, nil},

		{l.garden, &corev1.ConfigMapList{}, project, "crazy-botany.ca-cluster", merge(published("ca-cluster"), restricted, labels{"discovery.gardener.cloud/public": "shoot-ca"}), nil},
		{l.garden, &corev1.ConfigMapList{}, project, "crazy-botany.ca-kubelet", merge(published("ca-kubelet"), restricted), nil},
		{l.garden, &corev1.SecretList{}, project, "crazy-botany.ca-cluster", merge(published("ca-cluster"), restricted), nil},
		{l.garden, &corev1beta1.InternalSecretList{}, project, "crazy-botany.ca-client", published("ca-client"), nil},
		{l.garden, &corev1.SecretList{}, project, "crazy-botany.monitoring", published("monitoring"), nil},
		{l.garden, &corev1.SecretList{}, "gardener-system-shoot-issuer", "dev--1", labels{
			"discovery.gardener.cloud/public": "serviceaccount", "project.gardener.cloud/name": "dev", "shoot.gardener.cloud/name": "crazy-botany",
			"shoot.gardener.cloud/namespace": project,
		}, nil},
	} {
		t.Run(fmt.Sprintf("%T %s", want.list, want.name), func(t *testing.T) {
			if err := want.cluster.List(t.Context(), want.list, client.InNamespace(want.namespace)); err != nil {
				t.Fatal(err)
			}
			name := regexp.MustCompile("^" + strings.ReplaceAll(want.name, "crazy-botany.", "crazy-botany[.]") + "$")
			var names []string
			found := false
			if err := meta.EachListItem(want.list, func(item runtime.Object) error {
				object := item.(client.Object)
				if names = append(names, object.GetName()); !name.MatchString(object.GetName()) {
					return nil
				}
				found = true
				for what, pair := range map[string][2]map[string]string{
					"label": {want.labels, object.GetLabels()}, "annotation": {want.annotations, object.GetAnnotations()},
				} {
					for key, value := range pair[0] {
						if got, ok := pair[1][key]; !ok || got != value && value != "*" || value == "*" && got == "" {
							t.Errorf("%s: %s %s is %q, want %q", object.GetName(), what, key, got, value)
						}
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if !found {
				slices.Sort(names)
				t.Errorf("not found among %q", names)
			}
		})
	}

	users := &corev1.Secret{}
	if err := l.garden.Get(t.Context(), client.ObjectKey{Namespace: project, Name: "crazy-botany.monitoring"}, users); err != nil {
		t.Fatal(err)
	}
	if string(users.Data["username"]) != "admin" || len(users.Data["password"]) != 32 || !strings.HasPrefix(string(users.Data["auth"]), "admin:") {
		t.Errorf("the credentials for monitoring have the user %q, a password of %d characters", users.Data["username"], len(users.Data["password"]))
	}
}
