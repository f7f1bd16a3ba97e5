// Package driver is what the machine-controller-manager knows of an infrastructure: how machines are made, found and deleted.
package driver

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// Driver makes, finds and deletes machines at an infrastructure. Every call may be repeated at any time, as the caller may have died
// before it could note the answer. Calls end when their context does. Errors are, or wrap, an *Error that tells what to do about it.
type Driver interface {
	// CreateMachine makes the machine. It is only called when GetMachineStatus did not find it. It need not wait until the machine has
	// booted.
	CreateMachine(context.Context, Request) (Status, error)
	// GetMachineStatus finds the machine, by its provider ID or, if it has none yet, by its name. The error has the code NotFound if
	// there is none, or one that has ended and will not come back; a Status with the NodeName beside it has a Node deleted that joined
	// just before. It has the code Uninitialized if the machine is to be initialized.
	GetMachineStatus(context.Context, Request) (Status, error)
	// InitializeMachine does what is left to do after a machine was made. Drivers that never return Uninitialized need not care.
	InitializeMachine(context.Context, Request) (Status, error)
	// DeleteMachine deletes the machine and everything that was made for it. It returns no error when nothing is left of it. An error
	// with the code DeadlineExceeded says that it is under way: the call is repeated soon.
	DeleteMachine(context.Context, Request) error
	// ListMachines lists the names of the machines that were made from a class, by provider ID, so that machines without a Machine
	// are found.
	ListMachines(context.Context, ClassRequest) (map[string]string, error)
}

// Notifier is implemented by drivers that learn from the infrastructure when a machine changes. Their GetMachineStatus is cheap: it is
// also called for healthy machines, so that one that is lost is replaced before its Node is known to be gone.
type Notifier interface {
	// Changes is a source of events about machines. The handler is given objects with the namespace and name of the Machine.
	Changes(handler.EventHandler) source.Source
}

// ClassRequest names a class of machines and what is needed to ask about them.
type ClassRequest struct {
	// Class is the class.
	Class *machinev1alpha1.MachineClass
	// Credentials are the data of the Secret that the class names for them. It may be nil.
	Credentials map[string][]byte
}

// Request names a machine and what is needed to make it.
type Request struct {
	ClassRequest
	// Machine is the machine. Do not change it.
	Machine *machinev1alpha1.Machine
	// UserData is what the machine executes when it boots first. It is set for CreateMachine and InitializeMachine only.
	UserData []byte
}

// Status is what an infrastructure tells about a machine.
type Status struct {
	// ProviderID is the ID of the machine there.
	ProviderID string
	// NodeName is the name that the machine's Node will have.
	NodeName string
	// Addresses are its addresses, if they are known.
	Addresses []corev1.NodeAddress
}

// Code says what kind of error it is. The names are those of gRPC, as lastOperation.errorCode has them.
type Code string

// Codes, and what the caller does about them. Everything else than NotFound is tried again; after one that only an edit helps
// against, it is tried more rarely.
const (
	// Canceled calls ended with their context.
	Canceled Code = "Canceled"
	// Unknown errors have no code.
	Unknown Code = "Unknown"
	// InvalidArgument says that the class or the machine cannot be understood. Only an edit helps.
	InvalidArgument Code = "InvalidArgument"
	// DeadlineExceeded says that it takes longer, or took too long. It is tried again soon.
	DeadlineExceeded Code = "DeadlineExceeded"
	// NotFound says that there is no such machine.
	NotFound Code = "NotFound"
	// AlreadyExists says that something of this name is in the way.
	AlreadyExists Code = "AlreadyExists"
	// PermissionDenied says that the credentials do not allow it. Only an edit helps.
	PermissionDenied Code = "PermissionDenied"
	// ResourceExhausted says that a quota is used up or that there is no such machine to be had now. The cluster-autoscaler tries
	// another pool when it reads this code.
	ResourceExhausted Code = "ResourceExhausted"
	// FailedPrecondition says that something else has to happen first.
	FailedPrecondition Code = "FailedPrecondition"
	// Aborted says that something else happened at the same time.
	Aborted Code = "Aborted"
	// Unimplemented says that the driver does not do this.
	Unimplemented Code = "Unimplemented"
	// Internal says that something broke.
	Internal Code = "Internal"
	// Unavailable says that the infrastructure does not answer now. It is tried again soon.
	Unavailable Code = "Unavailable"
	// Unauthenticated says that the credentials are wrong. Only an edit helps.
	Unauthenticated Code = "Unauthenticated"
	// Uninitialized says that there is a machine, which InitializeMachine is to be called for.
	Uninitialized Code = "Uninitialized"
)

// Error is what a driver returns. Its text reaches users: no credentials, please.
type Error struct {
	Code Code
	Err  error
}

// Errorf returns an error with a code. The rest is as for fmt.Errorf.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of an error, and an empty one for none.
func CodeOf(err error) Code {
	var coded *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &coded):
		return coded.Code
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Canceled
	default:
		return Unknown
	}
}

// NeedsEdit tells whether an error lasts until somebody edits something.
func (c Code) NeedsEdit() bool {
	return c == InvalidArgument || c == PermissionDenied || c == Unauthenticated || c == Unimplemented
}
