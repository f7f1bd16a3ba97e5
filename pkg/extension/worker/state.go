package worker

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// State is what is kept of the machines of a control plane that moves to another seed: the gardenlet of the old seed collects it, that of the new one
// writes it to status.state of the Worker, compressed, before it requests to restore it. The names of the fields are those of the original.
type State struct {
	// MachineDeployments are the deployments by name. Those without MachineSets are left out.
	MachineDeployments map[string]*DeploymentState `json:"machineDeployments,omitempty"`
}

// DeploymentState is what is kept of a MachineDeployment.
type DeploymentState struct {
	// Replicas is its number of machines, which the cluster-autoscaler may have changed.
	Replicas int32 `json:"replicas,omitempty"`
	// MachineSets are its sets, without their status.
	MachineSets []machinev1alpha1.MachineSet `json:"machineSets,omitempty"`
	// Machines are the machines of these sets that have a node or a provider ID, without their status.
	Machines []machinev1alpha1.Machine `json:"machines,omitempty"`
}

// mostState is how many bytes the state of machines may have when it is decompressed, which is that of more than 10,000 machines: who wrote it may be the
// gardenlet of another seed.
const mostState = 32 << 20

// compressed is how the state is in a ShootState, and in status.state.
type compressed struct {
	State []byte `json:"state"`
}

// EncodeState returns the state for a ShootState and for status.state of a Worker: compressed, as it may be large.
func EncodeState(state *State) ([]byte, error) {
	content, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("encode machines: %w", err)
	}
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = writer.Write(content)
	if err = errors.Join(err, writer.Close()); err != nil {
		return nil, fmt.Errorf("compress machines: %w", err)
	}
	return json.Marshal(compressed{State: out.Bytes()})
}

// DecodeState returns the state of machines in status.state of a Worker. One that is not compressed is valid, too. Errors do not quote it.
func DecodeState(raw []byte) (*State, error) {
	packed := compressed{}
	if err := json.Unmarshal(raw, &packed); err != nil {
		return nil, errors.New("it is not the state of machines")
	}
	if len(packed.State) > 0 {
		reader, err := gzip.NewReader(bytes.NewReader(packed.State))
		if err != nil {
			return nil, fmt.Errorf("decompress the state of machines: %w", err)
		}
		if raw, err = io.ReadAll(io.LimitReader(reader, mostState+1)); err != nil {
			return nil, fmt.Errorf("decompress the state of machines: %w", err)
		}
		if len(raw) > mostState {
			return nil, fmt.Errorf("the state of machines has more than %d bytes", mostState)
		}
	}
	state := &State{}
	// An unknown format must not be taken for a state without machines: they would be created anew.
	if err := json.Unmarshal(raw, state); err != nil || len(packed.State) == 0 && state.MachineDeployments == nil {
		return nil, errors.New("it is not the state of machines")
	}
	return state, nil
}
