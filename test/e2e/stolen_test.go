//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// testStolenGardenlet uses the credentials of the first seed's gardenlet for all that belongs to the second seed and its shoot theirs.
func (l *landscape) testStolenGardenlet(t *testing.T, mine, theirs *corev1beta1.Shoot) {
	ctx := working(t)
	stolen := l.gardenletCredentials(t)
	// Otherwise, all would be refused anyway.
	own := dynamic.NewForConfigOrDie(stolen)
	if _, err := own.Resource(resourceOf("core.gardener.cloud/v1beta1", "shoots")).Namespace(mine.Namespace).Get(ctx, mine.Name, metav1.GetOptions{}); err != nil {
		t.Fatalf("the gardenlet does not reach its own shoot: %v", err)
	}
	attempts := l.attempts(t, theirs)
	refused := map[string]string{} // by user agent, which the audit log names
	for i, attempt := range attempts {
		config := rest.CopyConfig(stolen)
		config.UserAgent = fmt.Sprintf("e2e-attempt-%d-%d", os.Getpid(), i)
		err := attempt.do(ctx, config)
		switch {
		case attempt.open != "" && err != nil:
			t.Errorf("%s is refused, but %s: %v", attempt.name, attempt.open, err)
		case attempt.open == "" && !apierrors.IsForbidden(err):
			t.Errorf("%s is not refused: %v", attempt.name, err)
		case attempt.open == "":
			refused[config.UserAgent] = attempt.name
		}
	}
	t.Logf("%d of %d attempts were refused", len(refused), len(attempts))
	logs := l.auditDirs(t, constants.GardenNamespace)
	eventually(t, func(context.Context) error {
		missing, err := notAudited(logs, refused, constants.SeedUserNamePrefix+"local")
		if len(missing) > 0 {
			err = errors.Join(err, fmt.Errorf("the audit log does not have %s", strings.Join(missing, ", ")))
		}
		return err
	})
}

// gardenletCredentials are those of the gardenlet of the first seed.
func (l *landscape) gardenletCredentials(t *testing.T) *rest.Config {
	t.Helper()
	secret := &corev1.Secret{}
	if err := l.client.Get(t.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: "gardenlet-kubeconfig"}, secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	// The name of the garden is resolved within the landscape only.
	config.Host, config.ServerName = l.garden.config.Host, l.garden.config.ServerName
	config.QPS, config.Burst = -1, -1
	return config
}

// notAudited returns which refused requests of a user, by user agent, the audit logs in the given directories do not name.
func notAudited(dirs []string, refused map[string]string, user string) (missing []string, err error) {
	found := map[string]bool{}
	for _, dir := range dirs {
		if err := refusals(filepath.Join(dir, "audit.log"), user, found); err != nil {
			return nil, err
		}
	}
	for agent, name := range refused {
		if !found[agent] {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// refusals adds the user agents of requests of a user that were refused according to an audit log.
func refusals(log, user string, found map[string]bool) error {
	file, err := os.Open(log)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), "e2e-attempt-") {
			continue
		}
		event := &auditv1.Event{}
		if err := json.Unmarshal(lines.Bytes(), event); err != nil {
			return err
		}
		if event.User.Username == user && event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
			found[event.UserAgent] = true
		}
	}
	return lines.Err()
}

// attempt is a request with stolen credentials.
type attempt struct {
	name string
	do   func(ctx context.Context, config *rest.Config) error
	// open says why it is not refused, empty if it is.
	open string
}

// prey is an object that belongs to another seed, or to a shoot there.
type prey struct {
	apiVersion, kind, resource string
	namespace, name            string
	// status says that its status is written by itself.
	status bool
	// copyName is the name of one to create; empty for none.
	copyName string
	// spec is for one that does not exist.
	spec map[string]any
	// open are verbs that are not refused, with the reason.
	open map[string]string
}

func object(apiVersion, kind, resource, namespace, name string) prey {
	return prey{apiVersion: apiVersion, kind: kind, resource: resource, namespace: namespace, name: name, copyName: name + "-copy"}
}

func (p prey) withStatus() prey                  { p.status = true; return p }
func (p prey) copied(name string) prey           { p.copyName = name; return p }
func (p prey) withSpec(spec map[string]any) prey { p.spec = spec; return p }

// but says which verbs are not refused.
func (p prey) but(reason string, verbs ...string) prey {
	p.open = map[string]string{}
	for _, verb := range verbs {
		p.open[verb] = reason
	}
	return p
}

var reads = []string{"get", "list", "watch"}

const (
	openForUsers     = "any user may read Seeds"
	openForGardenlet = "any gardenlet may read it: it has no credentials, but names Secrets that have them"
	openEvents       = "any gardenlet may report events in the garden"
)

// attempts are all requests for what belongs to the second seed and a shoot there. Writes are dry runs, as they must not do harm if they succeed.
func (l *landscape) attempts(t *testing.T, theirs *corev1beta1.Shoot) []attempt {
	const (
		core, security, management = "core.gardener.cloud/v1beta1", "security.gardener.cloud/v1alpha1", "seedmanagement.gardener.cloud/v1alpha1"
		operations                 = "operations.gardener.cloud/v1alpha1"
		otherProject               = "garden-theirs"
		thirdSeed                  = "local-3" // which does not exist
	)
	seed, installation, request := l.findOfSecondSeed(t)
	l.createPrey(t, theirs, otherProject)
	current := &corev1beta1.Shoot{}
	if err := l.garden.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), current); err != nil {
		t.Fatal(err)
	}
	namespace := theirs.Namespace
	var all []attempt
	for _, p := range []prey{
		object(core, "Shoot", "shoots", namespace, "theirs").withStatus(),
		// One of a shoot that has none yet would be refused; one without a shoot is an error.
		object(core, "ShootState", "shootstates", namespace, "theirs").copied(""),
		object("v1", "Secret", "secrets", namespace, "theirs"),
		object("v1", "Secret", "secrets", namespace, "theirs.ca-cluster").copied("theirs.ssh-keypair"),
		object("v1", "Secret", "secrets", namespace, "theirs.monitoring"),
		object("v1", "Secret", "secrets", otherProject, "theirs"),
		object("v1", "Secret", "secrets", "seed-"+secondSeed, "theirs"),
		object("v1", "Secret", "secrets", "garden", "theirs"),
		object("v1", "Secret", "secrets", "kube-system", "bootstrap-token-thei01").copied("bootstrap-token-thei02"),
		object(core, "InternalSecret", "internalsecrets", namespace, "theirs.ca-client"),
		object("v1", "ConfigMap", "configmaps", namespace, "theirs"),
		object("v1", "ConfigMap", "configmaps", namespace, "theirs.ca-cluster").copied("theirs.ca-kubelet"),
		object("v1", "ConfigMap", "configmaps", "seed-"+secondSeed, "kube-root-ca.crt"),
		object("v1", "ConfigMap", "configmaps", "garden", "kube-root-ca.crt"),
		object(security, "WorkloadIdentity", "workloadidentities", namespace, "theirs"),
		object(security, "CredentialsBinding", "credentialsbindings", otherProject, "theirs"),
		object(core, "SecretBinding", "secretbindings", otherProject, "theirs"),
		object(core, "BackupBucket", "backupbuckets", "", string(seed.UID)).withStatus().but(openForGardenlet, reads...),
		object(core, "BackupEntry", "backupentries", namespace, current.Status.TechnicalID+"--"+string(current.UID)).withStatus().but(openForGardenlet, reads...),
		object(core, "ControllerInstallation", "controllerinstallations", "", installation).withStatus(),
		object(operations, "Bastion", "bastions", namespace, "theirs").withStatus().withSpec(bastionSpec(theirs)),
		object(management, "ManagedSeed", "managedseeds", "garden", "theirs").withStatus(),
		object(management, "Gardenlet", "gardenlets", "garden", secondSeed).withStatus().copied(""), // another one would be a conflict
		object(management, "Gardenlet", "gardenlets", "garden", thirdSeed).withStatus().copied(thirdSeed).withSpec(gardenletOf(t, thirdSeed, seed)),
		object("coordination.k8s.io/v1", "Lease", "leases", "gardener-system-seed-lease", secondSeed),
		object("coordination.k8s.io/v1", "Lease", "leases", "garden", "gardener-controller-manager-leader-election"),
		object("certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests", "", request).withStatus(),
		object("v1", "Namespace", "namespaces", "", "seed-"+secondSeed).withStatus(),
		object("v1", "Namespace", "namespaces", "", otherProject).withStatus(),
		object(core, "Project", "projects", "", "theirs").withStatus(),
		object(core, "Seed", "seeds", "", secondSeed).withStatus().but(openForUsers, reads...),
		object("v1", "ServiceAccount", "serviceaccounts", "seed-"+secondSeed, "default"),
		object("v1", "ServiceAccount", "serviceaccounts", "garden", "gardener-controller-manager"),
		object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", "", "cluster-admin"),
		object("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", "garden", "theirs"),
		object(core, "ControllerRegistration", "controllerregistrations", "", "provider-local").but("any gardenlet may read ControllerRegistrations", reads...),
		object("core.gardener.cloud/v1", "ControllerDeployment", "controllerdeployments", "", "theirs"),
		object("v1", "Event", "events", namespace, "theirs").but(openEvents, "create", "patch"),
	} {
		all = append(all, l.attemptsOn(t, p)...)
	}
	return append(all, l.otherAttempts(t, theirs)...)
}

// gardenletOf is the spec of a Gardenlet for a seed of the given name, which is like another one.
func gardenletOf(t *testing.T, name string, seed *corev1beta1.Seed) map[string]any {
	t.Helper()
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&seed.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{
		"deployment": map[string]any{"helm": map[string]any{"ociRepository": map[string]any{"ref": "registry.example/gardenlet:v1"}}},
		"config": map[string]any{
			"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
			"seedConfig": map[string]any{"metadata": map[string]any{"name": name}, "spec": spec},
		},
	}
}

// createPrey creates what a second seed may have, and what the landscape has not created for it.
func (l *landscape) createPrey(t *testing.T, theirs *corev1beta1.Shoot, otherProject string) {
	t.Helper()
	l.apply(t, &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: corev1beta1.ProjectSpec{Namespace: &otherProject}})
	await(t, l.garden.client, func(projects []*corev1beta1.Project) error {
		for _, project := range projects {
			if project.Name == "theirs" && project.Status.Phase == corev1beta1.ProjectReady {
				return nil
			}
		}
		return errors.New("the project is not ready")
	}, client.InNamespace(""))
	secret := func(namespace, name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: map[string]string{"key": "private"}}
	}
	bootstrap := secret("kube-system", "bootstrap-token-thei01")
	bootstrap.Type = corev1.SecretTypeBootstrapToken
	bootstrap.StringData = map[string]string{
		"token-id": "thei01", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
		"description": "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource garden/" + secondSeed + ".",
	}
	bastion := &unstructured.Unstructured{Object: map[string]any{"spec": bastionSpec(theirs)}}
	bastion.SetAPIVersion("operations.gardener.cloud/v1alpha1")
	bastion.SetKind("Bastion")
	bastion.SetNamespace(theirs.Namespace)
	bastion.SetName("theirs")
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: theirs.Namespace, Name: "theirs"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: theirs.Namespace, Name: theirs.Name},
		Reason:         "Test", Message: "It is about a shoot of the second seed", Type: corev1.EventTypeNormal,
	}
	l.apply(t, secret(otherProject, "theirs"), secret("seed-"+secondSeed, "theirs"), secret("garden", "theirs"), bootstrap, bastion, event)
	t.Cleanup(func() { // The landscape may keep running.
		for _, object := range []client.Object{secret("garden", "theirs"), bootstrap, bastion, event} {
			if err := l.garden.client.Delete(context.WithoutCancel(t.Context()), object); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
}

// bastionSpec is the spec of a Bastion of a shoot. The controller manager deletes one of a shoot without nodes.
func bastionSpec(shoot *corev1beta1.Shoot) map[string]any {
	return map[string]any{
		"shootRef": map[string]any{"name": shoot.Name}, "sshPublicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEX1Uu1dCFqzRZ1SGNDGg2VjDn2j3VbqHuuPpeSHZSvM",
		"ingress": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8"}}},
	}
}

// findOfSecondSeed returns the second seed, the name of its ControllerInstallation, and that of the request for its gardenlet's certificate.
func (l *landscape) findOfSecondSeed(t *testing.T) (seed *corev1beta1.Seed, installation, request string) {
	t.Helper()
	seed = &corev1beta1.Seed{}
	if err := l.garden.client.Get(t.Context(), client.ObjectKey{Name: secondSeed}, seed); err != nil {
		t.Fatal(err)
	}
	installations := &corev1beta1.ControllerInstallationList{}
	if err := l.garden.client.List(t.Context(), installations); err != nil {
		t.Fatal(err)
	}
	for _, i := range installations.Items {
		if i.Spec.SeedRef != nil && i.Spec.SeedRef.Name == secondSeed {
			installation = i.Name
		}
	}
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := l.garden.client.List(t.Context(), requests); err != nil {
		t.Fatal(err)
	}
	for _, r := range requests.Items {
		block, _ := pem.Decode(r.Spec.Request)
		if parsed, err := x509.ParseCertificateRequest(block.Bytes); err == nil && parsed.Subject.CommonName == constants.SeedUserNamePrefix+secondSeed {
			request = r.Name
		}
	}
	if installation == "" || request == "" {
		t.Fatalf("seed %q has the ControllerInstallation %q and the CertificateSigningRequest %q", secondSeed, installation, request)
	}
	return seed, installation, request
}

// attemptsOn are requests with all verbs for one object, for all objects of its namespace, and for all objects of its kind.
func (l *landscape) attemptsOn(t *testing.T, p prey) (all []attempt) {
	t.Helper()
	where := resourceOf(p.apiVersion, p.resource)
	of := func(config *rest.Config) dynamic.ResourceInterface {
		c := dynamic.NewForConfigOrDie(config).Resource(where)
		if p.namespace == "" {
			return c
		}
		return c.Namespace(p.namespace)
	}
	existing, err := of(l.garden.config).Get(t.Context(), p.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		existing = &unstructured.Unstructured{}
		existing.SetAPIVersion(p.apiVersion)
		existing.SetKind(p.kind)
		existing.SetNamespace(p.namespace)
		existing.SetName(p.name)
		if p.spec != nil {
			existing.Object["spec"] = p.spec
		}
	} else if err != nil {
		t.Fatalf("%s %s/%s: %v", p.kind, p.namespace, p.name, err)
	}
	fresh := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range existing.DeepCopy().Object {
		if key != "metadata" && key != "status" {
			fresh.Object[key] = value
		}
	}
	fresh.SetNamespace(p.namespace)
	fresh.SetName(p.copyName)
	dryRun := []string{metav1.DryRunAll}
	patch := []byte(`{"metadata":{"annotations":{"stolen":"true"}}}`)
	add := func(verb, title string, do func(context.Context, dynamic.ResourceInterface) error) {
		all = append(all, attempt{
			name: title + " " + p.resource + " " + strings.TrimPrefix(p.namespace+"/"+p.name, "/"), open: p.open[verb],
			do: func(ctx context.Context, config *rest.Config) error { return do(ctx, of(config)) },
		})
	}
	add("get", "get", func(ctx context.Context, c dynamic.ResourceInterface) error {
		_, err := c.Get(ctx, p.name, metav1.GetOptions{})
		return err
	})
	for _, by := range []struct {
		what    string
		options metav1.ListOptions
	}{
		{"", metav1.ListOptions{}},
		{" by name", metav1.ListOptions{FieldSelector: "metadata.name=" + p.name}},
		{" by the label of the other seed", metav1.ListOptions{LabelSelector: constants.PrefixSeedName + secondSeed + "=true"}},
		{" by the lack of a label", metav1.ListOptions{LabelSelector: constants.PrefixSeedName + "local!=false"}},
	} {
		add("list", "list"+by.what, func(ctx context.Context, c dynamic.ResourceInterface) error {
			_, err := c.List(ctx, by.options)
			return err
		})
		add("watch", "watch"+by.what, func(ctx context.Context, c dynamic.ResourceInterface) error {
			watch, err := c.Watch(ctx, by.options)
			if err == nil {
				watch.Stop()
			}
			return err
		})
	}
	if p.copyName != "" {
		add("create", "create", func(ctx context.Context, c dynamic.ResourceInterface) error {
			_, err := c.Create(ctx, fresh.DeepCopy(), metav1.CreateOptions{DryRun: dryRun})
			return err
		})
	}
	add("update", "update", func(ctx context.Context, c dynamic.ResourceInterface) error {
		_, err := c.Update(ctx, existing.DeepCopy(), metav1.UpdateOptions{DryRun: dryRun})
		return err
	})
	add("patch", "patch", func(ctx context.Context, c dynamic.ResourceInterface) error {
		_, err := c.Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
		return err
	})
	add("delete", "delete", func(ctx context.Context, c dynamic.ResourceInterface) error {
		return c.Delete(ctx, p.name, metav1.DeleteOptions{DryRun: dryRun})
	})
	add("deletecollection", "delete all", func(ctx context.Context, c dynamic.ResourceInterface) error {
		return c.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dryRun}, metav1.ListOptions{})
	})
	if p.namespace != "" {
		all = append(all, attempt{name: "list of all namespaces " + p.resource, open: p.open["list"], do: func(ctx context.Context, config *rest.Config) error {
			_, err := dynamic.NewForConfigOrDie(config).Resource(where).List(ctx, metav1.ListOptions{})
			return err
		}})
	}
	if p.status {
		add("update status", "update the status of", func(ctx context.Context, c dynamic.ResourceInterface) error {
			_, err := c.UpdateStatus(ctx, existing.DeepCopy(), metav1.UpdateOptions{DryRun: dryRun})
			return err
		})
		add("patch status", "patch the status of", func(ctx context.Context, c dynamic.ResourceInterface) error {
			_, err := c.Patch(ctx, p.name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun}, "status")
			return err
		})
	}
	return all
}

// otherAttempts are requests for credentials, identities, and what runs in the garden.
func (l *landscape) otherAttempts(t *testing.T, theirs *corev1beta1.Shoot) (all []attempt) {
	t.Helper()
	add := func(name string, do func(context.Context, *rest.Config) error) {
		all = append(all, attempt{name: name, do: do})
	}
	for _, request := range []struct{ resource, apiVersion, kind, namespace, name, subresource string }{
		{"shoots", "authentication.gardener.cloud/v1alpha1", "AdminKubeconfigRequest", theirs.Namespace, "theirs", "adminkubeconfig"},
		{"shoots", "authentication.gardener.cloud/v1alpha1", "ViewerKubeconfigRequest", theirs.Namespace, "theirs", "viewerkubeconfig"},
		{"shoots", "authentication.gardener.cloud/v1alpha1", "AdminKubeconfigRequest", theirs.Namespace, "mine", "adminkubeconfig"},
		{"workloadidentities", "security.gardener.cloud/v1alpha1", "TokenRequest", theirs.Namespace, "theirs", "token"},
		{"serviceaccounts", "authentication.k8s.io/v1", "TokenRequest", "seed-" + secondSeed, "default", "token"},
		{"serviceaccounts", "authentication.k8s.io/v1", "TokenRequest", "garden", "gardener-controller-manager", "token"},
		{"serviceaccounts", "authentication.k8s.io/v1", "TokenRequest", "kube-system", "generic-garbage-collector", "token"},
	} {
		add(fmt.Sprintf("create %s/%s of %s/%s", request.resource, request.subresource, request.namespace, request.name), func(ctx context.Context, config *rest.Config) error {
			group := map[string]string{"shoots": "core.gardener.cloud/v1beta1", "workloadidentities": "security.gardener.cloud/v1alpha1", "serviceaccounts": "v1"}[request.resource]
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			object.SetAPIVersion(request.apiVersion)
			object.SetKind(request.kind)
			object.SetName(request.name)
			_, err := dynamic.NewForConfigOrDie(config).Resource(resourceOf(group, request.resource)).Namespace(request.namespace).
				Create(ctx, object, metav1.CreateOptions{}, request.subresource)
			return err
		})
	}
	for name, identity := range map[string]rest.ImpersonationConfig{
		"the other gardenlet": {UserName: constants.SeedUserNamePrefix + secondSeed, Groups: []string{constants.SeedsGroup}},
		"an administrator":    {UserName: "kubernetes-admin", Groups: []string{"system:masters"}},
		"a ServiceAccount":    {UserName: "system:serviceaccount:garden:gardener-controller-manager"},
	} {
		add("impersonate "+name, func(ctx context.Context, config *rest.Config) error {
			config.Impersonate = identity
			_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			return err
		})
	}
	pods := &corev1.PodList{}
	if err := l.client.List(t.Context(), pods, client.InNamespace("garden")); err != nil || len(pods.Items) == 0 {
		t.Fatalf("the garden has %d pods, %v", len(pods.Items), err)
	}
	pod := pods.Items[0].Name
	add("get the logs of pod garden/"+pod, func(ctx context.Context, config *rest.Config) error {
		return kubernetes.NewForConfigOrDie(config).CoreV1().Pods("garden").GetLogs(pod, &corev1.PodLogOptions{}).Do(ctx).Error()
	})
	add("execute in pod garden/"+pod, func(ctx context.Context, config *rest.Config) error {
		return kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient().Post().Namespace("garden").Resource("pods").Name(pod).SubResource("exec").Do(ctx).Error()
	})
	add("list pods of the garden", func(ctx context.Context, config *rest.Config) error {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("garden").List(ctx, metav1.ListOptions{})
		return err
	})
	add("list nodes", func(ctx context.Context, config *rest.Config) error {
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	})
	request := certificateRequest(t, constants.SeedUserNamePrefix+secondSeed)
	add("request a certificate of the other gardenlet", func(ctx context.Context, config *rest.Config) error {
		_, err := kubernetes.NewForConfigOrDie(config).CertificatesV1().CertificateSigningRequests().Create(ctx, request, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	add("approve a certificate", func(ctx context.Context, config *rest.Config) error {
		_, err := kubernetes.NewForConfigOrDie(config).CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, "theirs", request, metav1.UpdateOptions{})
		return err
	})
	return all
}

// certificateRequest requests a client certificate as a gardenlet does.
func certificateRequest(t *testing.T, user string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: user, Organization: []string{constants.SeedsGroup}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}}
}

// resourceOf is a resource of a group and version.
func resourceOf(apiVersion, name string) schema.GroupVersionResource {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		panic(err)
	}
	return version.WithResource(name)
}
