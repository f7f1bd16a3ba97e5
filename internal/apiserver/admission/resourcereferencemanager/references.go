package resourcereferencemanager

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
)

// gardenNamespace is where the objects are that Seeds refer to.
const gardenNamespace = "garden"

// target is the object that a reference names.
type target struct {
	apiVersion, kind string
	key              client.ObjectKey
}

// reference is a reference in an object.
type reference struct {
	target
	path string
	// trusted is whether only operators write it: they need no permission to read the target.
	trusted bool
}

// targetKind is a kind that can be referred to.
type targetKind struct {
	resource string
	// private is whether users need the permission to read it before they refer to it.
	private bool
	object  func() client.Object // nil for those of the kube-apiserver
}

var (
	inCore     = corev1beta1.SchemeGroupVersion.String()
	inSecurity = securityv1alpha1.SchemeGroupVersion.String()
)

// targetKinds are all kinds of targets, by apiVersion and kind. Validation refuses references to others.
var targetKinds = map[[2]string]targetKind{
	{"v1", "Secret"}:                   {resource: "secrets", private: true},
	{"v1", "ConfigMap"}:                {resource: "configmaps", private: true},
	{inSecurity, "WorkloadIdentity"}:   {resource: "workloadidentities", private: true, object: func() client.Object { return &securityv1alpha1.WorkloadIdentity{} }},
	{inCore, "InternalSecret"}:         {resource: "internalsecrets", private: true, object: func() client.Object { return &corev1beta1.InternalSecret{} }},
	{inCore, "Quota"}:                  {resource: "quotas", private: true, object: func() client.Object { return &corev1beta1.Quota{} }},
	{inCore, "Seed"}:                   {object: func() client.Object { return &corev1beta1.Seed{} }},
	{inCore, "CloudProfile"}:           {object: func() client.Object { return &corev1beta1.CloudProfile{} }},
	{inCore, "NamespacedCloudProfile"}: {object: func() client.Object { return &corev1beta1.NamespacedCloudProfile{} }},
	{inCore, "ExposureClass"}:          {object: func() client.Object { return &corev1beta1.ExposureClass{} }},
	{inCore, "SecretBinding"}:          {object: func() client.Object { return &corev1beta1.SecretBinding{} }},
	{inSecurity, "CredentialsBinding"}: {object: func() client.Object { return &securityv1alpha1.CredentialsBinding{} }},
	{inCore, "ControllerDeployment"}:   {object: func() client.Object { return &corev1beta1.ControllerDeployment{} }},
}

func (t target) find() targetKind { return targetKinds[[2]string{t.apiVersion, t.kind}] }
func (t target) resource() string { return t.find().resource }
func (r reference) private() bool { return !r.trusted && r.find().private }
func (t target) group() string    { return t.groupVersion().Group }
func (t target) version() string  { return t.groupVersion().Version }
func (t target) groupVersion() schema.GroupVersion {
	gv, _ := schema.ParseGroupVersion(t.apiVersion) // those in targetKinds parse
	return gv
}

// collector gathers references.
type collector struct {
	refs    []reference
	trusted bool
}

// add adds a reference, unless it is empty or of an unknown kind, which validation refuses.
func (c *collector) add(path, apiVersion, kind, namespace, name string) {
	t := target{apiVersion: apiVersion, kind: kind, key: client.ObjectKey{Namespace: namespace, Name: name}}
	if _, known := targetKinds[[2]string{apiVersion, kind}]; known && name != "" {
		c.refs = append(c.refs, reference{target: t, path: path, trusted: c.trusted})
	}
}

// addName adds a reference that is only a name.
func (c *collector) addName(path, apiVersion, kind, namespace string, name *string) {
	if name != nil {
		c.add(path, apiVersion, kind, namespace, *name)
	}
}

func (c *collector) addResources(resources []corev1beta1.NamedResourceReference, namespace string) {
	for i, r := range resources {
		c.add(fmt.Sprintf("spec.resources[%d].resourceRef", i), r.ResourceRef.APIVersion, r.ResourceRef.Kind, namespace, r.ResourceRef.Name)
	}
}

// references returns what an object refers to.
func references(obj client.Object) []reference {
	c := &collector{}
	switch o := obj.(type) {
	case *corev1beta1.SecretBinding:
		c.add("secretRef", "v1", "Secret", cmp.Or(o.SecretRef.Namespace, o.Namespace), o.SecretRef.Name)
		for i, quota := range o.Quotas {
			c.add(fmt.Sprintf("quotas[%d]", i), inCore, "Quota", cmp.Or(quota.Namespace, o.Namespace), quota.Name)
		}
	case *securityv1alpha1.CredentialsBinding:
		ref := o.CredentialsRef
		c.add("credentialsRef", ref.APIVersion, ref.Kind, cmp.Or(ref.Namespace, o.Namespace), ref.Name)
		for i, quota := range o.Quotas {
			c.add(fmt.Sprintf("quotas[%d]", i), inCore, "Quota", cmp.Or(quota.Namespace, o.Namespace), quota.Name)
		}
	case *corev1beta1.Shoot:
		c.ofShoot(o)
	case *corev1beta1.Seed:
		c.trusted = true
		c.addResources(o.Spec.Resources, gardenNamespace)
	case *corev1beta1.BackupBucket:
		c.trusted = true
		c.addName("spec.seedName", inCore, "Seed", "", o.Spec.SeedName)
		if ref := o.Spec.CredentialsRef; ref != nil {
			c.add("spec.credentialsRef", ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
		}
	case *corev1beta1.BackupEntry:
		c.addName("spec.seedName", inCore, "Seed", "", o.Spec.SeedName)
	case *corev1beta1.ControllerRegistration:
		if o.Spec.Deployment != nil {
			for i, ref := range o.Spec.Deployment.DeploymentRefs {
				c.add(fmt.Sprintf("spec.deployment.deploymentRefs[%d].name", i), inCore, "ControllerDeployment", "", ref.Name)
			}
		}
	}
	return c.refs
}

func (c *collector) ofShoot(shoot *corev1beta1.Shoot) {
	spec, namespace := &shoot.Spec, shoot.Namespace
	if profile := spec.CloudProfile; profile != nil {
		if profile.Kind == "NamespacedCloudProfile" {
			c.add("spec.cloudProfile", inCore, profile.Kind, namespace, profile.Name)
		} else {
			c.add("spec.cloudProfile", inCore, "CloudProfile", "", profile.Name)
		}
	}
	c.addName("spec.seedName", inCore, "Seed", "", spec.SeedName)
	c.addName("spec.exposureClassName", inCore, "ExposureClass", "", spec.ExposureClassName)
	c.addName("spec.secretBindingName", inCore, "SecretBinding", namespace, spec.SecretBindingName)
	c.addName("spec.credentialsBindingName", inSecurity, "CredentialsBinding", namespace, spec.CredentialsBindingName)
	c.addResources(spec.Resources, namespace)
	if dns := spec.DNS; dns != nil {
		for i, provider := range dns.Providers {
			path := fmt.Sprintf("spec.dns.providers[%d]", i)
			c.addName(path+".secretName", "v1", "Secret", namespace, provider.SecretName)
			if ref := provider.CredentialsRef; ref != nil {
				c.add(path+".credentialsRef", ref.APIVersion, ref.Kind, namespace, ref.Name)
			}
		}
	}
	for i, worker := range spec.Provider.Workers {
		if worker.ControlPlane != nil && worker.ControlPlane.Backup != nil && worker.ControlPlane.Backup.CredentialsRef != nil {
			ref := worker.ControlPlane.Backup.CredentialsRef
			c.add(fmt.Sprintf("spec.provider.workers[%d].controlPlane.backup.credentialsRef", i), ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
		}
	}
	server := spec.Kubernetes.KubeAPIServer
	if server == nil {
		return
	}
	const path = "spec.kubernetes.kubeAPIServer"
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		c.add(path+".auditConfig.auditPolicy.configMapRef", "v1", "ConfigMap", namespace, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if authentication := server.StructuredAuthentication; authentication != nil {
		c.add(path+".structuredAuthentication.configMapName", "v1", "ConfigMap", namespace, authentication.ConfigMapName)
	}
	if authorization := server.StructuredAuthorization; authorization != nil {
		c.add(path+".structuredAuthorization.configMapName", "v1", "ConfigMap", namespace, authorization.ConfigMapName)
		for i, kubeconfig := range authorization.Kubeconfigs {
			c.add(fmt.Sprintf("%s.structuredAuthorization.kubeconfigs[%d].secretName", path, i), "v1", "Secret", namespace, kubeconfig.SecretName)
		}
	}
	for i, plugin := range server.AdmissionPlugins {
		c.addName(fmt.Sprintf("%s.admissionPlugins[%d].kubeconfigSecretName", path, i), "v1", "Secret", namespace, plugin.KubeconfigSecretName)
	}
}
