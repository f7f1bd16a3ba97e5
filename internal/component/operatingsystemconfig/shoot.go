package operatingsystemconfig

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	// ManagedResourceName is the name of the ManagedResource with what NodeAgentSecret and Access return.
	ManagedResourceName = "shoot-gardener-node-agent"

	bootstrapRole = "gardener.cloud:system:node-bootstrapper"
	agentRole     = "gardener.cloud:system:gardener-node-agents"
	bootstrappers = "system:bootstrappers"
)

// NodeAgentSecret packs the OperatingSystemConfig with purpose reconcile, which the extension has reconciled, into the Secret that the
// node agents of a pool read. References to Secrets are replaced by their data; secretData returns the value of a key of a Secret in the
// namespace of the OperatingSystemConfig, or nil if there is no such key. It may be nil if there are no such references.
func NodeAgentSecret(
	pool, hash string, osc *extensionsv1alpha1.OperatingSystemConfig, secretData func(name, key string) ([]byte, error),
) (*corev1.Secret, error) {
	packed := &extensionsv1alpha1.OperatingSystemConfig{
		TypeMeta: metav1.TypeMeta{
			APIVersion: extensionsv1alpha1.SchemeGroupVersion.String(), Kind: extensionsv1alpha1.OperatingSystemConfigResource,
		},
		Spec: *osc.Spec.DeepCopy(),
		Status: extensionsv1alpha1.OperatingSystemConfigStatus{
			ExtensionUnits: osc.Status.ExtensionUnits, ExtensionFiles: slices.Clone(osc.Status.ExtensionFiles),
			InPlaceUpdates: osc.Status.InPlaceUpdates,
		},
	}
	for _, files := range [][]extensionsv1alpha1.File{packed.Spec.Files, packed.Status.ExtensionFiles} {
		for i := range files {
			ref := files[i].Content.SecretRef
			if ref == nil {
				continue
			}
			if secretData == nil {
				return nil, fmt.Errorf("file %s: Secret %q cannot be read", files[i].Path, ref.Name)
			}
			data, err := secretData(ref.Name, ref.DataKey)
			if err != nil {
				return nil, fmt.Errorf("file %s: %w", files[i].Path, err)
			}
			if data == nil {
				return nil, fmt.Errorf("file %s: Secret %q has no key %q", files[i].Path, ref.Name, ref.DataKey)
			}
			files[i].Content = extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{
				Encoding: string(extensionsv1alpha1.B64FileCodecID), Data: base64.StdEncoding.EncodeToString(data),
			}}
		}
	}
	data, err := yaml.Marshal(packed)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: SecretName(pool, hash),
			Labels: map[string]string{constants.GardenRole: constants.GardenRoleOperatingSystemConfig, constants.WorkerPool: pool},
			Annotations: map[string]string{
				nodeagentconfigv1alpha1.AnnotationKeyChecksumDownloadedOperatingSystemConfig: hex.EncodeToString(sum[:]),
			},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{nodeagentconfigv1alpha1.DataKeyOperatingSystemConfig: data},
	}, nil
}

// AccessValues are what the permissions of node agents depend on.
type AccessValues struct {
	// Authorizer says that the kube-apiserver authorizes node agents with gardener-resource-manager, which only allows access to their own node.
	// Without it, they have roles with the permissions of all of them.
	Authorizer bool
	// SecretNames are the Secrets of all pools, for the roles.
	SecretNames []string
}

// Access renders the permissions of new machines, kubelets and node agents in the shoot: machines with a bootstrap token may request
// certificates, which kube-controller-manager approves for kubelets, and gardener-resource-manager for node agents.
func Access(v AccessValues) []client.Object {
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
	}
	bind := func(name, role, to string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{group(to)},
		}
	}
	objects := []client.Object{
		bind(bootstrapRole, "system:node-bootstrapper", bootstrappers),
		bind("gardener.cloud:system:nodeclient", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", bootstrappers),
		bind("gardener.cloud:system:selfnodeclient", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes"),
	}
	if v.Authorizer {
		return objects
	}
	rule := func(apiGroup, resource string, names []string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{apiGroup}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}
	}
	secrets := slices.Clone(v.SecretNames)
	slices.Sort(secrets)
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: agentRole},
		Rules:      []rbacv1.PolicyRule{rule("coordination.k8s.io", "leases", nil, "get", "list", "watch", "create", "update")},
	}
	if len(secrets) > 0 {
		role.Rules = append(role.Rules, rule("", "secrets", secrets, "get", "list", "watch"))
	}
	return append(objects,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agentRole}, Rules: []rbacv1.PolicyRule{
			rule("", "nodes", nil, "get", "list", "watch", "patch", "update"),
			rule("", "nodes/status", nil, "patch"),
			rule("", "events", nil, "create", "patch"),
			rule("events.k8s.io", "events", nil, "create", "patch"),
			rule("certificates.k8s.io", "certificatesigningrequests", nil, "get", "create"),
		}},
		bind(agentRole, agentRole, constants.NodeAgentsGroup),
		role,
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: agentRole},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: agentRole},
			Subjects:   []rbacv1.Subject{group(constants.NodeAgentsGroup)},
		},
	)
}
