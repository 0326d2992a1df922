package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/unfray/unfray/backend"
)

// Identify asks a server which of the kinds it is. The error says that it does
// not answer, or is of none.
func Identify(ctx context.Context, o Options) (kind string, err error) {
	if err := o.check(); err != nil {
		return "", err
	}
	c := newClient(&o)
	var props struct {
		Build string `json:"build_info"`
		Slots *int   `json:"total_slots"`
	}
	err = c.do(ctx, http.MethodGet, "/props", nil, &props)
	if err == nil && (props.Slots != nil || props.Build != "") {
		return KindLlamaCpp, nil
	} else if !isAnswer(err) {
		return "", err
	}
	var list struct {
		Data []struct {
			Owner string `json:"owned_by"`
		} `json:"data"`
	}
	if err = c.do(ctx, http.MethodGet, "/v1/models", nil, &list); !isAnswer(err) {
		return "", err
	}
	for _, m := range list.Data {
		switch {
		case strings.EqualFold(m.Owner, "vllm"):
			return KindVLLM, nil
		case strings.EqualFold(m.Owner, "llamacpp"):
			return KindLlamaCpp, nil
		}
	}
	return "", errors.New("remote: the server is neither llama.cpp's nor vLLM, as far as it tells")
}

// isAnswer reports whether there is a server that answered, be it with an error.
func isAnswer(err error) bool {
	return err == nil || errors.As(err, new(*backend.UpstreamError)) || errors.As(err, new(*backend.ProtocolError))
}
