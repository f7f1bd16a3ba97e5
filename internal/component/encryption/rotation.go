package encryption

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// keyLength is the length of a key in bytes, which all providers accept.
const keyLength = 32

// State is how far an API server encrypts its data. It has keys, so it is stored where only the API server and its operator can read it.
type State struct {
	// Keys are those of Values. There are two only during a rotation.
	Keys []Key `json:"keys"`
	// Created is when the newest key was created.
	Created time.Time `json:"created"`
	// Rewritten is whether all data is encrypted with the first key.
	Rewritten bool `json:"rewritten,omitempty"`
	// Rotating is whether the last key is to replace the first one.
	Rotating bool `json:"rotating,omitempty"`
}

// Server is an API server whose key is rotated.
type Server interface {
	// Save stores the state. It is called before the state is used, so that no key is lost with which something was written.
	Save(ctx context.Context, state State) error
	// Use configures the API server.
	Use(ctx context.Context, keys []Key) error
	// AwaitUsed returns when the API server runs with the last configuration, and no process of it with another one.
	AwaitUsed(ctx context.Context) error
	// Rewrite has the API server write all data again whose encryption it is.
	Rewrite(ctx context.Context) error
}

// NewState returns that of an API server which is going to encrypt with a new key.
func NewState(now time.Time) State {
	return State{Keys: []Key{newKey(now)}, Created: now}
}

func newKey(now time.Time) Key {
	secret := make([]byte, keyLength)
	_, _ = rand.Read(secret) // never fails
	// A name is used once only: data says with which key it was encrypted.
	return Key{Provider: corev1beta1.EncryptionProviderTypeAESCBC, Name: fmt.Sprintf("key%d", now.UnixNano()), Secret: secret}
}

// Rotate adds a new key to the state that will replace the current one, unless a rotation is in progress already.
func (s State) Rotate(now time.Time) State {
	if s.Rotating || len(s.Keys) != 1 || !s.Rewritten {
		return s
	}
	return State{Keys: append(slices.Clone(s.Keys), newKey(now)), Created: now, Rewritten: true, Rotating: true}
}

// next returns the state after an API server uses this one, and has rewritten its data if it was not; and whether it differs. All processes
// of an API server must be able to read with a key before one of them writes with it.
func (s State) next() (State, bool) {
	next := State{Keys: slices.Clone(s.Keys), Created: s.Created, Rewritten: true}
	switch {
	case s.Rotating:
		slices.Reverse(next.Keys)
		next.Rewritten = false
	case len(s.Keys) > 1:
		next.Keys = next.Keys[:1]
	case s.Rewritten:
		return s, false
	}
	return next, true
}

// Reconcile has an API server encrypt as the state says, and completes its rotation. It continues where an earlier run was interrupted, as
// long as it gets the state that was saved last.
func Reconcile(ctx context.Context, server Server, state State) error {
	for {
		if err := server.Save(ctx, state); err != nil {
			return fmt.Errorf("save the state of the encryption: %w", err)
		}
		if err := server.Use(ctx, state.Keys); err != nil {
			return err
		}
		next, more := state.next()
		if !more {
			return nil
		}
		if err := server.AwaitUsed(ctx); err != nil {
			return err
		}
		if !state.Rewritten {
			if err := server.Rewrite(ctx); err != nil {
				return err
			}
		}
		state = next
	}
}
