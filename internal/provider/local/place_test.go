package local

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
)

func kubeSystem(uid types.UID) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: uid}}
}

// newOther is another cluster.
func newOther(t *testing.T, uid types.UID) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithObjects(kubeSystem(uid)).Build()
}

// placesOf knows other clusters. A kubeconfig begins with the UID of its cluster.
func placesOf(seed client.Client, others ...client.Client) *places {
	return &places{seed, seed, func(kubeconfig []byte) (client.Client, string, error) {
		for _, other := range others {
			system := &corev1.Namespace{}
			err := other.Get(context.Background(), client.ObjectKey{Name: metav1.NamespaceSystem}, system)
			if err == nil && strings.HasPrefix(string(kubeconfig), string(system.UID)) {
				return other, "https://" + string(kubeconfig) + ".example", nil
			}
		}
		return nil, "", errors.New("it is not valid")
	}}
}

func infrastructuresIn(seed client.Client, others ...client.Client) *infrastructures {
	return &infrastructures{places: placesOf(seed, others...)}
}

// withState is the Infrastructure of a control plane.
func withState(state string) *extensionsv1alpha1.Infrastructure {
	infrastructure := newInfrastructure()
	if state != "" {
		infrastructure.Status.State = &runtime.RawExtension{Raw: []byte(state)}
	}
	return infrastructure
}

// setKubeconfig changes the credentials of the shoot. Nothing deletes the key, and nil the Secret.
func setKubeconfig(t *testing.T, seed client.Client, kubeconfig *string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: credentials.Namespace, Name: credentials.Name}}
	if err := client.IgnoreNotFound(seed.Delete(t.Context(), secret)); err != nil {
		t.Fatal(err)
	}
	if kubeconfig == nil {
		return
	}
	if *kubeconfig != "" {
		secret.Data = map[string][]byte{"kubeconfig": []byte(*kubeconfig)}
	}
	if err := seed.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

func hasMachinesNamespace(t *testing.T, c client.Client) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Name: "infra-shoot--dev--crazy"}, &corev1.Namespace{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// Machines stay in the cluster in which they were created, whatever becomes of the credentials, and are deleted there.
func TestPlaceOfMachines(t *testing.T) {
	const inSeed, inOther = `remove the key "kubeconfig"`, `the cluster with the API server https://other.example`
	for name, tc := range map[string]struct {
		first       string
		later       *string
		refused     string // how it is refused to reconcile
		undeletable bool
	}{
		"the seed":                              {later: new("")},
		"the seed, and a kubeconfig is added":   {later: new("other"), refused: inSeed},
		"the seed, and an invalid one is added": {later: new("invalid"), refused: "it is not valid"},
		"the seed, and its own is added":        {later: new("seed")},
		"the seed, and credentials are gone":    {refused: `read Secret "cloudprovider"`},
		"another":                               {first: "other", later: new("other")},
		"another, with new credentials":         {first: "other", later: new("other-rotated")},
		"another, and the key is removed":       {first: "other", later: new(""), refused: inOther, undeletable: true},
		"another, and it is that of the seed":   {first: "other", later: new("seed"), refused: inOther, undeletable: true},
		"another, and it is of a third one":     {first: "other", later: new("third"), refused: inOther, undeletable: true},
		"another, and credentials are gone":     {first: "other", refused: `read Secret "cloudprovider"`, undeletable: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed, other, third := newSeed(t, tc.first), newOther(t, "other"), newOther(t, "third")
			a, infrastructure := infrastructuresIn(seed, seed, other, third), newInfrastructure()
			if err := a.Reconcile(t.Context(), infrastructure, ofSeed()); err != nil {
				t.Fatal(err)
			}
			at := map[bool]client.Client{true: seed, false: other}[tc.first == ""]
			if !hasMachinesNamespace(t, at) {
				t.Fatal("there is no namespace for machines")
			}

			setKubeconfig(t, seed, tc.later)
			err := a.Reconcile(t.Context(), infrastructure, ofSeed())
			if tc.refused == "" && err != nil || tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("error is %v, want %q", err, tc.refused)
			}
			if tc.refused != "" && tc.later != nil && !isConfigurationProblem(err) {
				t.Errorf("%v has no code", err)
			}
			for where, c := range map[string]client.Client{"the seed": seed, "the other cluster": other, "the third one": third} {
				if c != at && hasMachinesNamespace(t, c) {
					t.Errorf("%s has a namespace for machines, too", where)
				}
			}

			forced := infrastructure.DeepCopy()
			err = a.Delete(t.Context(), infrastructure, nil)
			if tc.undeletable {
				var waiting *extension.Wait
				if err == nil || errors.As(err, &waiting) || !hasMachinesNamespace(t, at) {
					t.Errorf("machines are forgotten: %v", err)
				}
				if err := a.ForceDelete(t.Context(), forced, nil); err != nil {
					t.Errorf("it waits for another cluster: %v", err)
				}
				return
			}
			waits(t, err, `Namespace "infra-shoot--dev--crazy" is being deleted`)
			if hasMachinesNamespace(t, at) {
				t.Error("machines are left behind")
			}
			if err := a.Delete(t.Context(), infrastructure, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// An Infrastructure of a version that recorded nothing takes where its machines are.
func TestPlaceOfFormerMachines(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "infra-shoot--dev--crazy", Name: "m"}}
	for name, tc := range map[string]struct {
		kubeconfig string
		objects    []client.Object
		want       string
		refused    bool
	}{
		"in the seed":                             {objects: []client.Object{pod}, want: `{"nodes":["10.1.0.0/16"],"place":{"uid":"seed"}}`},
		"in another cluster":                      {kubeconfig: "other", want: `{"nodes":["10.1.0.0/16"],"place":{"uid":"other","server":"https://other.example"}}`},
		"in the seed, for which it is":            {kubeconfig: "seed", objects: []client.Object{pod}, want: `{"nodes":["10.1.0.0/16"],"place":{"uid":"seed","server":"https://seed.example"}}`},
		"in the seed, and a kubeconfig was added": {kubeconfig: "other", objects: []client.Object{pod}, want: `{"nodes":["10.1.0.0/16"],"place":{"uid":"seed"}}`, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed, infrastructure := newSeed(t, tc.kubeconfig, tc.objects...), withState(`{"nodes":["10.1.0.0/16"]}`)
			err := infrastructuresIn(seed, seed, newOther(t, "other")).Reconcile(t.Context(), infrastructure, ofSeed())
			if tc.refused != isConfigurationProblem(err) || !tc.refused && err != nil {
				t.Errorf("error is %v", err)
			}
			if got := string(infrastructure.Status.State.Raw); got != tc.want {
				t.Errorf("state is %s, want %s", got, tc.want)
			}
		})
	}
}

// The place moves with the control plane: machines are found by the next seed, and where there are none, nothing is left behind.
func TestPlaceMoves(t *testing.T) {
	for name, tc := range map[string]struct {
		first, later string // the kubeconfig in the former seed, and in the next one
		stays        bool   // the namespace in the cluster of the former seed
		want         string // the UID in the next one
		refused      bool
	}{
		"from the seed, without machines":               {want: "next"},
		"from the seed, with a kubeconfig for it":       {first: "seed", later: "seed", stays: true, want: "seed"},
		"in another cluster":                            {first: "other", later: "other", want: "other"},
		"in another cluster, with one of the next seed": {first: "other", later: "next", want: "other", refused: true},
		"the kubeconfig is removed while it moves":      {first: "seed", stays: true, want: "seed", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			seed, next, other := newSeed(t, tc.first), newSeed(t, tc.later), newOther(t, "other")
			system := kubeSystem("next")
			if err := errors.Join(next.Delete(t.Context(), system), next.Create(t.Context(), kubeSystem("next"))); err != nil {
				t.Fatal(err)
			}
			infrastructure := newInfrastructure()
			a := infrastructuresIn(seed, seed, other)
			if err := a.Reconcile(t.Context(), infrastructure, ofSeed()); err != nil {
				t.Fatal(err)
			}
			kept := infrastructure.Status.State // by the gardenlet, before the Infrastructure migrates
			var waiting *extension.Wait
			if err := a.Migrate(t.Context(), infrastructure, nil); err != nil && !errors.As(err, &waiting) {
				t.Fatal(err)
			}
			if got := hasMachinesNamespace(t, seed); got != tc.stays {
				t.Errorf("the former seed has a namespace for machines: %v", got)
			}

			restored := newInfrastructure()
			restored.Status.State = kept
			err := infrastructuresIn(next, seed, next, other).Restore(t.Context(), restored, ofSeed())
			if tc.refused != isConfigurationProblem(err) || !tc.refused && err != nil {
				t.Errorf("error is %v", err)
			}
			state, err := stateOf(restored)
			if err != nil || string(state.Place.UID) != tc.want {
				t.Errorf("place is %+v, %v", state.Place, err)
			}
		})
	}
}

// Neither the ControlPlane nor the driver follows credentials to another cluster.
func TestDriverAccess(t *testing.T) {
	const there = `{"place":{"uid":"other","server":"https://other.example"}}`
	for name, tc := range map[string]struct {
		kubeconfig, state string
		want              driverAccess
		refused           bool
	}{
		"the seed":                                  {state: `{"place":{"uid":"seed"}}`},
		"the seed, and a kubeconfig is added":       {kubeconfig: "other", state: `{"place":{"uid":"seed"}}`},
		"another cluster":                           {kubeconfig: "other", state: there, want: driverAccess{[]byte("other"), "other"}},
		"another cluster, and the key is removed":   {state: there, refused: true},
		"another cluster, and it is of a third one": {kubeconfig: "third", state: there, want: driverAccess{[]byte("third"), "other"}}, // with which it does not start
		"nothing is recorded":                       {kubeconfig: "other", want: driverAccess{kubeconfig: []byte("other")}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := newSeed(t, tc.kubeconfig, withState(tc.state))
			a := placesOf(seed)
			got, err := a.access(t.Context(), namespace, credentials)
			if tc.refused != isConfigurationProblem(err) || !tc.refused && err != nil {
				t.Errorf("error is %v", err)
			}
			if string(got.kubeconfig) != string(tc.want.kubeconfig) || !tc.refused && got.cluster != tc.want.cluster {
				t.Errorf("access is %+v, want %+v", got, tc.want)
			}
			if err := a.permit(t.Context(), namespace, credentials); (err != nil) != tc.refused {
				t.Error(err)
			}
			roles := &rbacv1.RoleList{}
			if err := seed.List(t.Context(), roles); err != nil {
				t.Fatal(err)
			}
			if inSeed := slices.ContainsFunc(roles.Items, func(r rbacv1.Role) bool { return r.Namespace == "infra-"+namespace }); inSeed != (len(tc.want.kubeconfig) == 0 && !tc.refused) {
				t.Errorf("there is a role in the seed: %v", inSeed)
			}
		})
	}
}

// The server of a user's kubeconfig may be any program.
func TestAnswersOfAnotherCluster(t *testing.T) {
	const quota, empty = `{"apiVersion":"v1","kind":"ResourceQuota","spec":{"hard":{"pods":"1000000000000000000e9999999"}}}`, `{"apiVersion":"v1","kind":"PodList","items":[{}`
	for name, tc := range map[string]struct{ answer, want string }{
		"a quantity that takes long to decode": {quota, "exponent"},
		"kinds that take a gigabyte":           {empty + strings.Repeat(",{}", 1<<20) + "]}", "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", runtime.ContentTypeJSON)
				_, _ = io.WriteString(w, tc.answer)
			}))
			t.Cleanup(server.Close)
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
				Clusters:  map[string]*clientcmdapi.Cluster{"a": {Server: server.URL, CertificateAuthorityData: ca}},
				AuthInfos: map[string]*clientcmdapi.AuthInfo{"a": {Token: "a"}},
				Contexts:  map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a"}}, CurrentContext: "a",
			})
			if err != nil {
				t.Fatal(err)
			}
			c, _, err := connectTo(clientgoscheme.Scheme, func(string) string { return "" })(kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			err = c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "a"}, &corev1.ResourceQuota{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}
