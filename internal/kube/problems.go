package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Problems reads objects, of which kind, namespace and name are enough, and returns for each that is missing, not healthy or not rolled out why, with its
// kind and name.
func Problems(ctx context.Context, reader client.Reader, scheme *runtime.Scheme, objects ...client.Object) (problems []string, err error) {
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return nil, err
		}
		key := client.ObjectKeyFromObject(object)
		problem := func(err error) { problems = append(problems, fmt.Sprintf("%s %s: %s", gvk.Kind, key, err)) }
		if err := reader.Get(ctx, key, object); apierrors.IsNotFound(err) {
			problem(errors.New("not found"))
		} else if err != nil {
			return nil, fmt.Errorf("read %s %q: %w", gvk.Kind, key, err)
		} else if err := Healthy(object); err != nil {
			problem(err)
		} else if err := RolledOut(object); err != nil {
			problem(err)
		}
	}
	return problems, nil
}
