package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/unfray/unfray"
	"github.com/unfray/unfray/backend"
	"github.com/unfray/unfray/internal/upstream"
	"github.com/unfray/unfray/internal/wire"
)

// Causes for which the gateway itself ends a request.
var (
	errTimeout  = errors.New("gateway: the request took longer than the server allows")
	errDraining = errors.New("gateway: the server is shutting down")
)

// statusClientGone is what the log shows for a client that hung up. Nobody
// receives it.
const statusClientGone = 499

// apiError is an error as clients see it.
type apiError struct {
	status     int
	kind       string // "type" of OpenAI's error object
	code       string // "" is null
	param      string // "" is null
	message    string
	retryAfter time.Duration // 0: no such header
	allow      string        // methods, for 405
	cause      error         // for the log, may be nil
	// upstream is the answer of a server that runs the model. Clients get it as
	// it is.
	upstream *backend.UpstreamError
	report   json.RawMessage // what recovery tried, nil if it is not about that
}

func (e *apiError) Error() string {
	if e.cause != nil {
		return e.cause.Error()
	}
	return e.message
}

func (e *apiError) Unwrap() error { return e.cause }

// body is what goes into a stream of events too.
func (e *apiError) body() any {
	message := e.message
	if e.upstream != nil {
		// Clients know an event of an error by this member. Other servers' errors,
		// such as {"detail": …}, are put into one.
		var own struct {
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(e.upstream.Body, &own) == nil && len(own.Error) > 0 && string(own.Error) != "null" {
			return json.RawMessage(e.upstream.Body)
		}
		if text := bytes.TrimSpace(e.upstream.Body); len(text) > 0 {
			message = fmt.Sprintf("%s: %s", message, strings.ToValidUTF8(string(text), "\uFFFD"))
		}
	}
	body := wire.ErrorBody{Error: wire.Error{Message: message, Type: e.kind}}
	if e.param != "" {
		body.Error.Param = &e.param
	}
	if e.code != "" {
		body.Error.Code = &e.code
	}
	if e.report != nil {
		body.Unfray = &wire.Unfray{Recovery: e.report}
	}
	return body
}

const kindInvalid = "invalid_request_error"

func badRequest(param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: kindInvalid, param: param, message: fmt.Sprintf(format, args...)}
}

func noModel(name string) *apiError {
	return &apiError{
		status: http.StatusNotFound, kind: kindInvalid, param: "model", code: "model_not_found",
		message: fmt.Sprintf("the model %s does not exist; /v1/models lists those that do", strconv.QuoteToGraphic(name)),
	}
}

// publicError turns any error into what clients see. promptParam is the field
// that the endpoint calls its prompt.
func publicError(err error, promptParam string) *apiError {
	var (
		api     *apiError
		decode  *wire.DecodeError
		request *unfray.RequestError
		full    *backend.QueueFullError
		long    *backend.PromptTooLongError
		token   *backend.InvalidTokenError
		body    *http.MaxBytesError

		unsupported *backend.UnsupportedError
		answer      *backend.UpstreamError
	)
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &decode):
		return &apiError{status: http.StatusBadRequest, kind: kindInvalid, param: decode.Param, message: decode.Error(), cause: err}
	case errors.As(err, &request):
		param := request.Param
		if param == "prompt" {
			param = promptParam
		}
		return &apiError{status: http.StatusBadRequest, kind: kindInvalid, param: param, message: param + ": " + request.Text, cause: err}
	case errors.As(err, &unsupported):
		return badRequest(unsupported.Param, "%s: %s", unsupported.Param, unsupported.Text)
	case errors.As(err, &answer) && answer.Status < 400: // none that tells of a failure
		return &apiError{
			status: http.StatusBadGateway, kind: "server_error", code: "upstream_failed", cause: err,
			message: fmt.Sprintf("the model's server answered with status %d, which is none for this request; check its address", answer.Status),
		}
	case errors.As(err, &answer):
		return &apiError{
			status: answer.Status, kind: "upstream_error", cause: err, upstream: answer,
			message: fmt.Sprintf("the model's server failed with status %d", answer.Status),
		}
	case errors.As(err, &full):
		return &apiError{
			status: http.StatusTooManyRequests, kind: "rate_limit_error", code: "queue_full", cause: err,
			message:    fmt.Sprintf("the server is busy: %d requests are waiting; retry later", full.Waiting),
			retryAfter: max(full.RetryAfter, time.Second),
		}
	case errors.As(err, &long):
		return &apiError{
			status: http.StatusBadRequest, kind: kindInvalid, code: "context_length_exceeded", param: promptParam, cause: err,
			message: fmt.Sprintf("the prompt has %d tokens; this model's context holds %d, and one must be left to generate: shorten the prompt", long.Tokens, long.ContextLength),
		}
	case errors.As(err, &token):
		return invalidToken(token, promptParam, err)
	case errors.As(err, &body):
		return &apiError{
			status: http.StatusRequestEntityTooLarge, kind: kindInvalid, code: "request_too_large", cause: err,
			message: fmt.Sprintf("the request body is larger than %d bytes", body.Limit),
		}
	}
	return serverError(err)
}

func invalidToken(token *backend.InvalidTokenError, promptParam string, cause error) *apiError {
	e := &apiError{status: http.StatusBadRequest, kind: kindInvalid, param: promptParam, code: "invalid_token", cause: cause}
	e.message = fmt.Sprintf("token %d at position %d is outside the vocabulary: IDs go from 0 to %d", token.ID, token.Position, token.VocabSize-1)
	if token.Position < 0 {
		e.param = "logit_bias"
		e.message = fmt.Sprintf("token %d is outside the vocabulary: IDs go from 0 to %d", token.ID, token.VocabSize-1)
	}
	return e
}

// serverError is publicError for what is not the client's fault.
func serverError(err error) *apiError {
	e := &apiError{status: http.StatusInternalServerError, kind: "server_error", cause: err}
	var trouble *upstream.Error
	isTrouble := errors.As(err, &trouble)
	switch {
	// Why the request was ended comes before where it was then.
	case errors.Is(err, errTimeout), !isTrouble && errors.Is(err, context.DeadlineExceeded):
		e.status, e.code, e.message = http.StatusGatewayTimeout, "timeout", "the request took longer than this server allows; ask for fewer tokens or choices"
	case errors.Is(err, errDraining), errors.Is(err, backend.ErrClosed):
		e.status, e.code, e.message = http.StatusServiceUnavailable, "draining", "the server is shutting down; retry"
		e.retryAfter = time.Second
	case errors.Is(err, context.Canceled):
		e.status, e.code, e.message = statusClientGone, "client_closed_request", "the client closed the connection"
	case isTrouble && trouble.Timeout():
		e.status, e.code, e.message = http.StatusGatewayTimeout, "upstream_timeout", "the model's server did not answer in time; retry, or ask for less"
	case isTrouble, errors.As(err, new(*backend.ProtocolError)):
		e.status, e.code, e.message = http.StatusBadGateway, "upstream_failed", "the model's server cannot be reached, or broke off its answer; retry"
	default:
		// The cause may name files or native errors: it goes to the log only.
		e.message = "the server failed to process the request; its log says why, under this answer's X-Request-Id"
	}
	return e
}

// writeError answers with e. Nothing may have been written before.
func writeError(w http.ResponseWriter, e *apiError) {
	h := w.Header()
	if e.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.retryAfter.Seconds()))))
	}
	if e.allow != "" {
		h.Set("Allow", e.allow)
	}
	if up := e.upstream; up != nil {
		for _, name := range []string{"Content-Type", "Retry-After"} {
			if v := up.Header[name]; len(v) > 0 {
				h[name] = v
			}
		}
		w.WriteHeader(e.status)
		_, _ = w.Write(up.Body) // nobody is there to hear of a failure
		return
	}
	writeJSON(w, e.status, e.body())
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	data, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, err = w.Write(append(data, '\n'))
	return err
}
