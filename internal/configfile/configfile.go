// Package configfile reads the configuration files of processes.
//
// A file holds one object of a versioned kind, in YAML or JSON. It is decoded strictly, so that a misspelt key is an error that names
// it, then gets its defaults, and is validated. The result is complete and must not be changed.
package configfile

import (
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kind says how to read a configuration.
type Kind[T any] struct {
	// AddToScheme registers the kind and its defaults.
	AddToScheme func(*runtime.Scheme) error
	// Validate returns all that is invalid in a configuration with its defaults. It may be nil.
	Validate func(*T) field.ErrorList
}

// Read returns the configuration in a file.
func (k Kind[T]) Read(path string) (*T, error) {
	if path == "" {
		return nil, errors.New("no configuration file is given; name it with --config")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	config, err := k.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read configuration %q: %w", path, err)
	}
	return config, nil
}

// From returns the configuration of a reader; without a reader, the one with all defaults.
func (k Kind[T]) From(reader io.Reader) (*T, error) {
	if reader == nil {
		config := new(T)
		scheme := runtime.NewScheme()
		if err := k.AddToScheme(scheme); err != nil {
			return nil, fmt.Errorf("register the kind: %w", err)
		}
		if obj, ok := any(config).(runtime.Object); ok {
			scheme.Default(obj)
		}
		return config, nil
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return k.Decode(data)
}

// Decode returns the configuration in the content of a file.
func (k Kind[T]) Decode(data []byte) (*T, error) {
	scheme := runtime.NewScheme()
	if err := k.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kind: %w", err)
	}
	serializer := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	obj, gvk, err := serializer.Decode(data, nil, nil)
	config, ok := any(obj).(*T)
	switch {
	case gvk != nil && (runtime.IsNotRegisteredError(err) || err == nil && !ok):
		return nil, fmt.Errorf("unexpected kind %s of %s", gvk.Kind, gvk.GroupVersion())
	case err != nil:
		return nil, err
	}
	scheme.Default(obj)
	if err := k.Check(config); err != nil {
		return nil, err
	}
	return config, nil
}

// Check returns all that is invalid in a configuration with its defaults, as one error.
func (k Kind[T]) Check(config *T) error {
	if k.Validate == nil {
		return nil
	}
	if err := k.Validate(config).ToAggregate(); err != nil {
		return err
	}
	return nil
}
