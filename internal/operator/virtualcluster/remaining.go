package virtualcluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

const (
	// remainingTimeout is how long Seeds and Shoots may take to be listed. A webhook waits for them, which has 10 seconds.
	remainingTimeout = 5 * time.Second
	// maxRemaining is how many names of a kind are enough for a message.
	maxRemaining = 3
)

// Remaining returns which Seeds and Shoots the virtual garden has, as ListRemaining does. The error is ErrNoSecret if there was never access to
// a virtual garden.
func Remaining(ctx context.Context, runtime client.Reader, set ...func(*rest.Config)) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, remainingTimeout)
	defer cancel()
	access, err := Read(ctx, runtime, append(set, Limited(remainingTimeout))...)
	if err != nil {
		return nil, err
	}
	// With a mapper of its own, the client needs no discovery.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Seed"), meta.RESTScopeRoot)
	mapper.Add(corev1beta1.SchemeGroupVersion.WithKind("Shoot"), meta.RESTScopeNamespace)
	httpClient, err := rest.HTTPClientFor(access.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the virtual garden: %w", err)
	}
	defer httpClient.CloseIdleConnections()
	virtualAPI, err := client.New(access.Config, client.Options{HTTPClient: httpClient, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the virtual garden: %w", err)
	}
	return ListRemaining(ctx, virtualAPI)
}

// ListRemaining returns which Seeds and Shoots the virtual garden has, such as `Seed "a"`, though not more than a few of each kind.
func ListRemaining(ctx context.Context, virtual client.Reader) ([]string, error) {
	var names []string
	for _, kind := range []string{"Seed", "Shoot"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := virtual.List(ctx, list, client.Limit(maxRemaining)); apierrors.IsNotFound(err) {
			continue // gardener-apiserver was never registered, or is not any more
		} else if err != nil {
			return nil, fmt.Errorf("list %ss in the virtual garden: %w", kind, err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			if namespace := list.Items[i].Namespace; namespace != "" {
				name = namespace + "/" + name
			}
			names = append(names, kind+" "+strconv.Quote(name))
		}
	}
	return names, nil
}
