package audit

// Cause is why two prompts' tokens differ.
type Cause string

// The causes. The first six are about tokens of equal text.
const (
	TailRetokenised Cause = "tail_retokenised" // the earlier text goes on, and its last tokens change
	PartBoundary    Cause = "part_boundary"    // the same at the end of a shared part inside the prompt
	Separator       Cause = "separator"        // a separator of chunks has other tokens in its context
	OwnIDs          Cause = "own_ids"          // the model's own tokens were replaced by those of their text
	SpecialToken    Cause = "special_token"    // a control token here is text there, or split
	BOS             Cause = "bos"              // doubled or missing

	Timestamp   Cause = "timestamp"    // date, clock, epoch
	RandomID    Cause = "random_id"    // uuid, hash, request ID
	Counter     Cause = "counter"      // another number
	Whitespace  Cause = "whitespace"   // blanks and newlines only
	Case        Cause = "case"         // letters in upper and lower case
	UnicodeForm Cause = "unicode_form" // the same characters in another normal form
	Reordered   Cause = "reordered"    // the same parts in another order
	JSONRewrite Cause = "json_rewrite" // the same JSON value, spelled in another way
	ToolsChange Cause = "tools_change" // the list of tools has other tools
	PartsChange Cause = "parts_change" // a part was dropped or inserted, or a window slid, and the text goes on

	Thinking      Cause = "thinking"       // a reasoning block dropped, emptied or inserted
	TemplateDrift Cause = "template_drift" // the chat template renders a turn in another way later
	HistoryChange Cause = "history_change" // an earlier turn was removed, cut or rewritten

	Namespace Cause = "namespace" // another salt, adapter or extra key
	Media     Cause = "media"     // another image or other item
	Content   Cause = "content"   // other text
)

// Change is something that may be done about a loss.
type Change string

// The changes that are tried.
const (
	MoveToEnd       Change = "move_to_end"      // the volatile part below the stable parts
	CoarserTime     Change = "coarser_time"     // the date without the clock, or the clock without seconds
	StableSeparator Change = "stable_separator" // end the shared part with a separator that is proved stable
	StripBlank      Change = "strip_blank"      // the blanks at the seam belong to the next part, or to none
	ReplayIDs       Change = "replay_ids"       // send the model's own tokens back
	KeepBytes       Change = "keep_bytes"       // send what was sent before, byte for byte
	FixOrder        Change = "fix_order"        // keep the parts in one order
	DropBOS         Change = "drop_bos"         // one BOS
	TokenizeWhole   Change = "tokenize_whole"   // not part by part, and control tokens as such
	ShareNamespace  Change = "share_namespace"  // one salt, adapter and key
	KeepHistory     Change = "keep_history"     // keep what was dropped, and the rendering as it was
	KeepParts       Change = "keep_parts"       // parts that were sent stay where they were, new ones come behind them
	SameTools       Change = "same_tools"       // one list of tools with every request
	HealEnd         Change = "heal_end"         // cut the prompt to its stable prefix
	SmallerBlock    Change = "smaller_block"
	Nothing         Change = "nothing" // the loss is too small
)
