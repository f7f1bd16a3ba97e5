package resourcereferencemanager_test

import (
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/resourcereferencemanager"
)

const (
	namespace = "garden-dev"
	forbidden = metav1.StatusReasonForbidden
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func shoot(change func(*corev1beta1.ShootSpec)) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{ObjectMeta: meta("shoot"), Spec: corev1beta1.ShootSpec{
		CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
		Kubernetes:   corev1beta1.Kubernetes{Version: "1.35.1"},
		Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{
			Kubernetes: &corev1beta1.WorkerKubernetes{Version: new("1.34.1")},
			Machine:    corev1beta1.Machine{Image: &corev1beta1.ShootMachineImage{Name: "os", Version: new("1.0.0")}},
		}}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

func quota(name, kind string) *corev1beta1.Quota {
	return &corev1beta1.Quota{ObjectMeta: meta(name), Spec: corev1beta1.QuotaSpec{Scope: corev1.ObjectReference{Kind: kind}}}
}

// stored is what exists.
func stored() []client.Object {
	return []client.Object{
		&corev1.Secret{ObjectMeta: meta("secret")}, &corev1.ConfigMap{ObjectMeta: meta("config")},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "backup"}},
		&securityv1alpha1.WorkloadIdentity{ObjectMeta: meta("identity")}, &securityv1alpha1.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "identity"}},
		&corev1beta1.InternalSecret{ObjectMeta: meta("internal")},
		quota("project", "Project"), quota("second", "Project"), quota("credentials", "Secret"),
		&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}},
		&corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "internet"}},
		&corev1beta1.SecretBinding{ObjectMeta: meta("binding")}, &securityv1alpha1.CredentialsBinding{ObjectMeta: meta("binding")},
		&corev1beta1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "deployment"}},
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: new(namespace)}},
		&corev1beta1.BackupEntry{ObjectMeta: meta("entry"), Spec: corev1beta1.BackupEntrySpec{BucketName: "full"}},
		profile("1.35.1", "1.34.1"), child("1.34.1"),
	}
}

// profile is a CloudProfile with some versions of Kubernetes, of which 1.34.1 is past its expiration.
func profile(versions ...string) *corev1beta1.CloudProfile {
	p := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	for _, version := range versions {
		v := corev1beta1.ExpirableVersion{Version: version}
		if version == "1.34.1" {
			v.ExpirationDate = &metav1.Time{Time: now.Add(-time.Hour)}
		}
		p.Spec.Kubernetes.Versions = append(p.Spec.Kubernetes.Versions, v)
	}
	p.Spec.MachineImages = []corev1beta1.MachineImage{{Name: "os", Versions: []corev1beta1.MachineImageVersion{
		{ExpirableVersion: corev1beta1.ExpirableVersion{Version: "1.0.0"}}, {ExpirableVersion: corev1beta1.ExpirableVersion{Version: "2.0.0"}},
	}}}
	return p
}

func child(versions ...string) *corev1beta1.NamespacedCloudProfile {
	p := &corev1beta1.NamespacedCloudProfile{ObjectMeta: meta("own")}
	p.Spec.Parent = corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
	p.Spec.Kubernetes = &corev1beta1.KubernetesSettings{}
	for _, version := range versions {
		p.Spec.Kubernetes.Versions = append(p.Spec.Kubernetes.Versions, corev1beta1.ExpirableVersion{Version: version})
	}
	return p
}

func deleted[T client.Object](obj T) T {
	obj.SetDeletionTimestamp(&metav1.Time{Time: now})
	obj.SetFinalizers([]string{"gardener"})
	return obj
}

func TestShootReferences(t *testing.T) {
	server := func(change func(*corev1beta1.KubeAPIServerConfig)) func(*corev1beta1.ShootSpec) {
		return func(s *corev1beta1.ShootSpec) {
			s.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{}
			change(s.Kubernetes.KubeAPIServer)
		}
	}
	resource := func(kind, name string) func(*corev1beta1.ShootSpec) {
		return func(s *corev1beta1.ShootSpec) {
			ref := autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: name}
			s.Resources = []corev1beta1.NamedResourceReference{{Name: "r", ResourceRef: ref}}
		}
	}
	// Each reference is tried with an object that exists, and with one that does not.
	for path, reference := range map[string]struct {
		exists string
		set    func(name string) func(*corev1beta1.ShootSpec)
	}{
		"spec.cloudProfile": {"local", func(name string) func(*corev1beta1.ShootSpec) {
			return func(s *corev1beta1.ShootSpec) { s.CloudProfile.Name = name }
		}},
		"spec.cloudProfile: NamespacedCloudProfile": {"own", func(name string) func(*corev1beta1.ShootSpec) {
			return func(s *corev1beta1.ShootSpec) {
				s.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: name}
			}
		}},
		"spec.seedName": {"seed", func(name string) func(*corev1beta1.ShootSpec) {
			return func(s *corev1beta1.ShootSpec) { s.SeedName = &name }
		}},
		"spec.exposureClassName": {"internet", func(name string) func(*corev1beta1.ShootSpec) {
			return func(s *corev1beta1.ShootSpec) { s.ExposureClassName = &name }
		}},
		"spec.secretBindingName": {"binding", func(name string) func(*corev1beta1.ShootSpec) {
			return func(s *corev1beta1.ShootSpec) { s.SecretBindingName = &name }
		}},
		"spec.credentialsBindingName": {"binding", func(name string) func(*corev1beta1.ShootSpec) {
			return func(s *corev1beta1.ShootSpec) { s.CredentialsBindingName = &name }
		}},
		"spec.resources[0].resourceRef: Secret":    {"secret", func(name string) func(*corev1beta1.ShootSpec) { return resource("Secret", name) }},
		"spec.resources[0].resourceRef: ConfigMap": {"config", func(name string) func(*corev1beta1.ShootSpec) { return resource("ConfigMap", name) }},
		"spec.dns.providers[0].secretName": {"secret", func(name string) func(*corev1beta1.ShootSpec) {
			return func(s *corev1beta1.ShootSpec) {
				s.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{{SecretName: &name}}}
			}
		}},
		"spec.dns.providers[0].credentialsRef": {"identity", func(name string) func(*corev1beta1.ShootSpec) {
			return func(s *corev1beta1.ShootSpec) {
				ref := &autoscalingv1.CrossVersionObjectReference{APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity", Name: name}
				s.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{{CredentialsRef: ref}}}
			}
		}},
		"spec.provider.workers[0].controlPlane.backup.credentialsRef": {"secret", func(name string) func(*corev1beta1.ShootSpec) {
			return func(s *corev1beta1.ShootSpec) {
				ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
				s.Provider.Workers[0].ControlPlane = &corev1beta1.WorkerControlPlane{Backup: &corev1beta1.Backup{CredentialsRef: ref}}
			}
		}},
		"spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef": {"config", func(name string) func(*corev1beta1.ShootSpec) {
			return server(func(c *corev1beta1.KubeAPIServerConfig) {
				c.AuditConfig = &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: name}}}
			})
		}},
		"spec.kubernetes.kubeAPIServer.structuredAuthentication.configMapName": {"config", func(name string) func(*corev1beta1.ShootSpec) {
			return server(func(c *corev1beta1.KubeAPIServerConfig) {
				c.StructuredAuthentication = &corev1beta1.StructuredAuthentication{ConfigMapName: name}
			})
		}},
		"spec.kubernetes.kubeAPIServer.structuredAuthorization.configMapName": {"config", func(name string) func(*corev1beta1.ShootSpec) {
			return server(func(c *corev1beta1.KubeAPIServerConfig) {
				c.StructuredAuthorization = &corev1beta1.StructuredAuthorization{ConfigMapName: name}
			})
		}},
		"spec.kubernetes.kubeAPIServer.structuredAuthorization.kubeconfigs[0].secretName": {"secret", func(name string) func(*corev1beta1.ShootSpec) {
			return server(func(c *corev1beta1.KubeAPIServerConfig) {
				c.StructuredAuthorization = &corev1beta1.StructuredAuthorization{Kubeconfigs: []corev1beta1.AuthorizerKubeconfigReference{{SecretName: name}}}
			})
		}},
		"spec.kubernetes.kubeAPIServer.admissionPlugins[0].kubeconfigSecretName": {"secret", func(name string) func(*corev1beta1.ShootSpec) {
			return server(func(c *corev1beta1.KubeAPIServerConfig) {
				c.AdmissionPlugins = []corev1beta1.AdmissionPlugin{{KubeconfigSecretName: &name}}
			})
		}},
	} {
		t.Run(path, func(t *testing.T) {
			path, _, _ := strings.Cut(path, ": ")
			if err := validate(t, admissiontest.Request{Resource: "shoots", Object: shoot(reference.set(reference.exists))}); err != nil {
				t.Errorf("a reference to what exists: %v", err)
			}
			missing := shoot(reference.set("missing"))
			err := validate(t, admissiontest.Request{Resource: "shoots", Object: missing})
			if admissiontest.Reason(err) != forbidden || !strings.Contains(err.Error(), path+": ") {
				t.Errorf("a reference to nothing: %v, want it forbidden with %s named", err, path)
			}
			if err := validate(t, admissiontest.Request{Resource: "shoots", Object: missing, Old: missing}); err != nil {
				t.Errorf("an update that leaves the reference alone: %v", err)
			}
			if err := validate(t, admissiontest.Request{Resource: "shoots", Object: deleted(missing), Old: shoot(nil)}); err != nil {
				t.Errorf("an update of a Shoot that is being deleted: %v", err)
			}
		})
	}
	t.Run("the user may not read it", func(t *testing.T) {
		err := validate(t, admissiontest.Request{Resource: "shoots", Object: shoot(resource("Secret", "secret"))}, "get secrets")
		if admissiontest.Reason(err) != forbidden {
			t.Errorf("got %v, want it forbidden", err)
		}
	})
}

func TestOtherReferences(t *testing.T) {
	secretBinding := func(change func(*corev1beta1.SecretBinding)) *corev1beta1.SecretBinding {
		b := &corev1beta1.SecretBinding{ObjectMeta: meta("b"), SecretRef: corev1.SecretReference{Name: "secret"}}
		change(b)
		return b
	}
	credentialsBinding := func(apiVersion, kind, name string, quotas ...string) *securityv1alpha1.CredentialsBinding {
		b := &securityv1alpha1.CredentialsBinding{ObjectMeta: meta("b"), CredentialsRef: corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}}
		for _, quota := range quotas {
			b.Quotas = append(b.Quotas, corev1.ObjectReference{Name: quota})
		}
		return b
	}
	otherIdentity := credentialsBinding("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "identity")
	otherIdentity.CredentialsRef.Namespace = "garden"
	bucket := func(seed, secret string) *corev1beta1.BackupBucket {
		return &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Spec: corev1beta1.BackupBucketSpec{
			SeedName: &seed, CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: secret},
		}}
	}
	seed := func(secret string) *corev1beta1.Seed {
		ref := autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret}
		return &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}, Spec: corev1beta1.SeedSpec{
			Resources: []corev1beta1.NamedResourceReference{{Name: "r", ResourceRef: ref}},
		}}
	}
	registration := func(deployment string) *corev1beta1.ControllerRegistration {
		return &corev1beta1.ControllerRegistration{Spec: corev1beta1.ControllerRegistrationSpec{Deployment: &corev1beta1.ControllerRegistrationDeployment{
			DeploymentRefs: []corev1beta1.DeploymentRef{{Name: deployment}},
		}}}
	}
	project := func(name, namespace string) *corev1beta1.Project {
		return &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.ProjectSpec{Namespace: &namespace}}
	}
	for name, tc := range map[string]struct {
		request admissiontest.Request
		denied  string
		want    metav1.StatusReason
	}{
		"SecretBinding":                                        {request: admissiontest.Request{Object: secretBinding(func(*corev1beta1.SecretBinding) {})}},
		"SecretBinding to a secret of another":                 {request: admissiontest.Request{Object: secretBinding(func(b *corev1beta1.SecretBinding) { b.SecretRef.Namespace = "other" })}, want: forbidden},
		"SecretBinding to what one may not read":               {request: admissiontest.Request{Object: secretBinding(func(*corev1beta1.SecretBinding) {})}, denied: "get secrets", want: forbidden},
		"SecretBinding with a missing quota":                   {request: admissiontest.Request{Object: secretBinding(func(b *corev1beta1.SecretBinding) { b.Quotas = []corev1.ObjectReference{{Name: "x"}} })}, want: forbidden},
		"CredentialsBinding":                                   {request: admissiontest.Request{Object: credentialsBinding("v1", "Secret", "secret", "project", "credentials")}},
		"CredentialsBinding to an identity":                    {request: admissiontest.Request{Object: credentialsBinding("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "identity")}},
		"CredentialsBinding to an identity of another project": {request: admissiontest.Request{Object: otherIdentity}},
		"CredentialsBinding to one that the user only reads":   {request: admissiontest.Request{Object: otherIdentity}, denied: "update workloadidentities", want: forbidden},
		"CredentialsBinding to an own one that the user reads": {request: admissiontest.Request{Object: credentialsBinding("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "identity")}, denied: "update workloadidentities"},
		"CredentialsBinding to an internal secret":             {request: admissiontest.Request{Object: credentialsBinding("core.gardener.cloud/v1beta1", "InternalSecret", "internal")}},
		"CredentialsBinding to a missing identity":             {request: admissiontest.Request{Object: credentialsBinding("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "x")}, want: forbidden},
		"CredentialsBinding with two of one scope":             {request: admissiontest.Request{Object: credentialsBinding("v1", "Secret", "secret", "project", "second")}, want: forbidden},
		"CredentialsBinding with a forbidden quota":            {request: admissiontest.Request{Object: credentialsBinding("v1", "Secret", "secret", "project")}, denied: "get quotas", want: forbidden},
		"BackupBucket":                        {request: admissiontest.Request{Object: bucket("seed", "backup")}, denied: "get secrets"},
		"BackupBucket of a missing seed":      {request: admissiontest.Request{Object: bucket("x", "backup")}, want: forbidden},
		"BackupBucket with a missing secret":  {request: admissiontest.Request{Object: bucket("seed", "x")}, want: forbidden},
		"BackupBucket with entries goes":      {request: admissiontest.Request{Resource: "backupbuckets", Old: &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "full"}}}, want: forbidden},
		"BackupBucket without entries goes":   {request: admissiontest.Request{Resource: "backupbuckets", Old: bucket("seed", "backup")}},
		"all BackupBuckets go":                {request: admissiontest.Request{Resource: "backupbuckets", Collection: true}, want: forbidden},
		"a Seed goes":                         {request: admissiontest.Request{Resource: "seeds", Old: seed("backup")}},
		"BackupEntry of a missing seed":       {request: admissiontest.Request{Object: &corev1beta1.BackupEntry{ObjectMeta: meta("e"), Spec: corev1beta1.BackupEntrySpec{SeedName: new("x")}}}, want: forbidden},
		"Seed":                                {request: admissiontest.Request{Object: seed("backup")}},
		"Seed with a missing resource":        {request: admissiontest.Request{Object: seed("x")}, want: forbidden},
		"ControllerRegistration":              {request: admissiontest.Request{Object: registration("deployment")}},
		"ControllerRegistration of nothing":   {request: admissiontest.Request{Object: registration("x")}, want: forbidden},
		"Project with a namespace of its own": {request: admissiontest.Request{Object: project("new", "garden-new")}},
		"Project with that of another":        {request: admissiontest.Request{Object: project("new", namespace)}, want: forbidden},
		"Project with that of the garden":     {request: admissiontest.Request{Object: project("new", "garden")}, denied: "update namespaces", want: forbidden},
		"Project that gets that of the garden": {
			request: admissiontest.Request{Object: project("new", "garden"), Old: &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "new"}}}, denied: "update namespaces", want: forbidden,
		},
		"Project that keeps that of the garden": {request: admissiontest.Request{Object: project("garden", "garden"), Old: project("garden", "garden")}, denied: "update namespaces"},
		"Project of operators":                  {request: admissiontest.Request{Object: project("garden", "garden")}},
		"Project of gardenadm": {request: admissiontest.Request{
			Object: project("garden", "garden"), User: "gardener.cloud:gardenadm:shoot:garden:root", Groups: []string{"gardener.cloud:system:shoots"},
		}, denied: "update namespaces"},
		"Project of gardenadm for another namespace": {request: admissiontest.Request{
			Object: project("garden", "garden"), User: "gardener.cloud:gardenadm:shoot:garden-dev:root", Groups: []string{"gardener.cloud:system:shoots"},
		}, denied: "update namespaces", want: forbidden},
		"Project that keeps its namespace": {request: admissiontest.Request{Object: project("dev", namespace), Old: project("dev", namespace)}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := validate(t, tc.request, tc.denied); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
}

func TestVersionsInUse(t *testing.T) {
	ofChild := shoot(func(s *corev1beta1.ShootSpec) {
		s.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "own"}
	})
	withoutImage := profile("1.35.1", "1.34.1")
	withoutImage.Spec.MachineImages[0].Versions = withoutImage.Spec.MachineImages[0].Versions[1:]
	for name, tc := range map[string]struct {
		shoot    *corev1beta1.Shoot
		old, obj client.Object
		want     metav1.StatusReason
	}{
		"unused":                              {shoot: shoot(nil), old: profile("1.36.0", "1.35.1", "1.34.1"), obj: profile("1.35.1", "1.34.1")},
		"of the control plane":                {shoot: shoot(nil), old: profile("1.35.1", "1.34.1"), obj: profile("1.34.1"), want: forbidden},
		"of a worker":                         {shoot: shoot(nil), old: profile("1.35.1", "1.34.1"), obj: profile("1.35.1"), want: forbidden},
		"of a machine image":                  {shoot: shoot(nil), old: profile("1.35.1", "1.34.1"), obj: withoutImage, want: forbidden},
		"of a Shoot that is going":            {shoot: deleted(shoot(nil)), old: profile("1.35.1", "1.34.1"), obj: profile("1.35.1")},
		"by way of a child":                   {shoot: ofChild, old: profile("1.35.1", "1.34.1"), obj: profile("1.34.1"), want: forbidden},
		"of a child, expired in the parent":   {shoot: ofChild, old: child("1.34.1"), obj: child(), want: forbidden},
		"of a child, offered by the parent":   {shoot: ofChild, old: child("1.35.1", "1.34.1"), obj: child("1.34.1")},
		"of a child that the Shoot is not of": {shoot: shoot(nil), old: child("1.34.1"), obj: child()},
	} {
		t.Run(name, func(t *testing.T) {
			err := newPlugin(admissiontest.Reader(t, append(stored(), tc.shoot)...)).Validate(t.Context(), admissiontest.Request{Object: tc.obj, Old: tc.old}.Attributes(), nil)
			if admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
}

func TestBrokenStore(t *testing.T) {
	for name, request := range map[string]admissiontest.Request{
		"a reference":       {Object: shoot(nil)},
		"a namespace":       {Object: &corev1beta1.Project{Spec: corev1beta1.ProjectSpec{Namespace: new("n")}}},
		"a deletion":        {Resource: "backupbuckets", Old: &corev1beta1.BackupBucket{}},
		"a removed version": {Old: profile("1.35.1"), Object: profile()},
	} {
		t.Run(name, func(t *testing.T) {
			err := newPlugin(admissiontest.Broken{}).Validate(t.Context(), request.Attributes(), nil)
			if admissiontest.Reason(err) != metav1.StatusReasonInternalError {
				t.Errorf("Validate() = %v, want an internal error", err)
			}
		})
	}
}

func newPlugin(reader client.Reader, denied ...string) *resourcereferencemanager.Plugin {
	p := resourcereferencemanager.New(testclock.NewFakePassiveClock(now))
	p.GardenCache = reader
	p.KubeAPI = reader
	p.SetAuthorizer(admissiontest.Denying(denied...))
	return p
}

func validate(t *testing.T, request admissiontest.Request, denied ...string) error {
	t.Helper()
	return newPlugin(admissiontest.Reader(t, stored()...), denied...).Validate(t.Context(), request.Attributes(), nil)
}
