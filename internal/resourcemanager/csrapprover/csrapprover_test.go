package csrapprover

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

func request(t *testing.T, commonName, organization string, names ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName, Organization: strings.Fields(organization)}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestReconcile(t *testing.T) {
	const (
		kubelet, agent = certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientSignerName
		agents, prefix = "gardener.cloud:node-agents", "gardener.cloud:node-agent:machine:"
	)
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := machinev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	node := func(name string, more ...corev1.NodeAddress) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: append([]corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
		}, more...)}}
	}
	// A cloud-controller-manager writes such addresses. Some are in other forms than a certificate has them, and the host name is there twice.
	inCloud := node("n5",
		corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: "n5"}, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: "n5.internal"},
		corev1.NodeAddress{Type: corev1.NodeExternalDNS, Address: "n5.example.com"}, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "1.2.3.4"},
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "2001:db8:0::1"},
	)
	machine := func(name, node string) *machinev1alpha1.Machine {
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, Labels: map[string]string{}, CreationTimestamp: metav1.Unix(1, 0)}}
		if node != "" {
			m.Labels["node"] = node
		}
		return m
	}
	for name, tc := range map[string]struct {
		signer, user string
		request      []byte
		without      bool // machines
		denied       string
		ignored      bool
	}{
		"kubelet":                     {signer: kubelet, user: "system:node:n1", request: request(t, "system:node:n1", "system:nodes", "n1", "10.0.0.1")},
		"kubelet, no machines":        {signer: kubelet, user: "system:node:n2", request: request(t, "system:node:n2", "system:nodes", "n2", "10.0.0.1"), without: true},
		"kubelet, user is no node":    {signer: kubelet, user: "admin", request: request(t, "admin", "system:nodes", "n1"), denied: "is not a node"},
		"kubelet, no names":           {signer: kubelet, user: "system:node:n1", request: request(t, "system:node:n1", "system:nodes"), denied: "neither DNS names nor"},
		"kubelet, other common name":  {signer: kubelet, user: "system:node:n1", request: request(t, "system:node:n2", "system:nodes", "n1"), denied: "common name"},
		"kubelet, other organization": {signer: kubelet, user: "system:node:n1", request: request(t, "system:node:n1", "system:nodes system:masters", "n1"), denied: "organizations"},
		"kubelet, no Node":            {signer: kubelet, user: "system:node:x", request: request(t, "system:node:x", "system:nodes", "x"), denied: `there is no Node "x"`},
		"kubelet, no Machine":         {signer: kubelet, user: "system:node:n2", request: request(t, "system:node:n2", "system:nodes", "n2", "10.0.0.1"), denied: "there are 0 Machines"},
		"kubelet, two Machines":       {signer: kubelet, user: "system:node:n3", request: request(t, "system:node:n3", "system:nodes", "n3", "10.0.0.1"), denied: "there are 2 Machines"},
		"kubelet, other DNS name":     {signer: kubelet, user: "system:node:n1", request: request(t, "system:node:n1", "system:nodes", "n1", "kubernetes", "10.0.0.1"), denied: "DNS names"},
		"kubelet, other address":      {signer: kubelet, user: "system:node:n1", request: request(t, "system:node:n1", "system:nodes", "n1", "1.2.3.4"), denied: "IP addresses"},
		"kubelet in a cloud": {
			signer: kubelet, user: "system:node:n5",
			request: request(t, "system:node:n5", "system:nodes", "n5", "n5.internal", "n5.example.com", "10.0.0.1", "1.2.3.4", "2001:db8::1"),
		},
		"kubelet in a cloud, before it has seen all addresses": {
			signer: kubelet, user: "system:node:n5", request: request(t, "system:node:n5", "system:nodes", "n5", "10.0.0.1"), denied: "DNS names",
		},
		"kubelet in a cloud, another external address": {
			signer: kubelet, user: "system:node:n5", denied: "IP addresses",
			request: request(t, "system:node:n5", "system:nodes", "n5", "n5.internal", "n5.example.com", "10.0.0.1", "1.2.3.5", "2001:db8::1"),
		},
		"kubelet, no request at all":      {signer: kubelet, user: "system:node:n1", request: []byte("x"), denied: "no certificate request"},
		"another client":                  {signer: agent, user: "admin", request: request(t, "admin", "system:masters"), ignored: true},
		"agent of a new node":             {signer: agent, user: "system:node:n9", request: request(t, prefix+"free", agents)},
		"agent of a node that was there":  {signer: agent, user: "system:node:n2", request: request(t, prefix+"free", agents), denied: "is older than"},
		"agent of another's node":         {signer: agent, user: "system:node:n1", request: request(t, prefix+"free", agents), denied: `is that of Machine "m1"`},
		"agent of a machine with a node":  {signer: agent, user: "system:node:n9", request: request(t, prefix+"m1", agents), denied: "has a node already"},
		"agent of a new machine":          {signer: agent, user: "system:bootstrap:abcdef", request: request(t, prefix+"free", agents)},
		"token of a machine with a node":  {signer: agent, user: "system:bootstrap:abcdef", request: request(t, prefix+"m1", agents), denied: "has a node already"},
		"token, no machines":              {signer: agent, user: "system:bootstrap:abcdef", request: request(t, prefix+"n1", agents), without: true, denied: "is not a node agent"},
		"agent of no machine":             {signer: agent, user: "system:node:n9", request: request(t, prefix+"x", agents), denied: `there is no Machine "x"`},
		"agent renews":                    {signer: agent, user: prefix + "m1", request: request(t, prefix+"m1", agents)},
		"agent wants to be another":       {signer: agent, user: prefix + "m1", request: request(t, prefix+"free", agents), denied: "of another node agent"},
		"agent wants to be administrator": {signer: agent, user: prefix + "m1", request: request(t, prefix+"m1", agents+" system:masters"), denied: "organizations"},
		"agent wants to be a server":      {signer: agent, user: prefix + "m1", request: request(t, prefix+"m1", agents, "kubernetes"), denied: "must not have the usages"},
		"agent that had a token":          {signer: agent, user: migratingUser, request: request(t, prefix+"m1", agents)},
		"agent that had a token, no node": {signer: agent, user: migratingUser, request: request(t, prefix+"free", agents), denied: "has no node yet"},
		"agent, any user":                 {signer: agent, user: "admin", request: request(t, prefix+"m1", agents), denied: "is not a node agent"},
		"agent, no machines":              {signer: agent, user: "system:node:n1", request: request(t, prefix+"n1", agents), without: true},
		"agent, no machines, other node":  {signer: agent, user: "system:node:n1", request: request(t, prefix+"n2", agents), without: true, denied: "for another node"},
	} {
		t.Run(name, func(t *testing.T) {
			csr := &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: "csr"},
				Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: tc.signer, Username: tc.user, Request: tc.request},
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(csr).WithObjects(
				csr, node("n1"), node("n2"), node("n3"), inCloud.DeepCopy(), machine("m1", "n1"), machine("m3", "n3"), machine("m4", "n3"), machine("m5", "n5"),
				machine("free", ""),
			).Build()
			r := &reconciler{machines: c, machineNamespace: "shoot", targetClient: c, targetReader: c}
			if tc.without {
				r.machineNamespace = ""
			}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(csr)}); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(csr), csr); err != nil {
				t.Fatal(err)
			}
			conditions := csr.Status.Conditions
			switch {
			case tc.ignored:
				if len(conditions) > 0 {
					t.Errorf("conditions are %+v", conditions)
				}
			case len(conditions) != 1:
				t.Errorf("conditions are %+v", conditions)
			case tc.denied == "" && conditions[0].Type != certificatesv1.CertificateApproved,
				tc.denied != "" && (conditions[0].Type != certificatesv1.CertificateDenied || !strings.Contains(conditions[0].Message, tc.denied)):
				t.Errorf("decision is %s: %s; want denied %q", conditions[0].Type, conditions[0].Message, tc.denied)
			}
		})
	}
}
