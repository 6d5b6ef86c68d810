"""Where the plugin meets its contract: the interfaces in ../../wit, as Python has them.

Texts, numbers and lists are what they are; records and the cases of variants are classes; an option
that is left out is None; an error is raised as `Err`. `README.md` has the command that writes the
stubs of `wit_world` for an editor.
"""

import json

import budget
from componentize_py_types import Err
from describe import describe, interval, numbers_in, show
from wit_world import exports
from wit_world.exports.before_tool_call import Refusal, Verdict, Verdict_Block, Verdict_Proceed
from wit_world.exports.tools import Execution_Parallel, Tool
from wit_world.imports import cancellation, config, key_value, progress
from wit_world.imports.key_value import Error_Denied
from wit_world.imports.types import (
    Content_Text,
    Failure,
    FailureKind,
    HookContext,
    ToolCall,
    ToolResult,
)

RESAMPLES_MAX = 100_000

DESCRIBE = Tool(
    name="describe_numbers",
    label="Describe numbers",
    description=(
        "Count, sum, mean, median, quartiles and standard deviation of a list of numbers; on "
        "request between which values the mean lies. Use it instead of calculating yourself."
    ),
    parameters=json.dumps(
        {
            "type": "object",
            "properties": {
                "numbers": {
                    "type": "array",
                    "items": {"type": "number"},
                    "minItems": 1,
                    "description": "the numbers",
                },
                "confidence": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "exclusiveMaximum": 1,
                    "description": "such as 0.95, to get an interval for the mean",
                },
                "resamples": {
                    "type": "integer",
                    "minimum": 100,
                    "maximum": RESAMPLES_MAX,
                    "default": 1000,
                    "description": "how many samples the interval is made from",
                },
            },
            "required": ["numbers"],
            "additionalProperties": False,
        }
    ),
    execution=Execution_Parallel(),
    meta=[("read-only", "true"), ("idempotent", "true")],
)


class Tools(exports.Tools):
    def list_tools(self) -> list[Tool]:
        return [DESCRIBE]

    def call_tool(self, call: ToolCall) -> ToolResult:
        if call.name != DESCRIBE.name:
            raise Err(Failure(FailureKind.REJECTED, "no-such-tool", f"there is no tool {call.name}"))
        try:
            return describe_numbers(json.loads(call.arguments))
        except OverflowError:
            raise Err(Failure(FailureKind.REJECTED, "overflow", "the numbers are too large"))


def describe_numbers(args: dict) -> ToolResult:
    numbers = args["numbers"]
    facts = describe(numbers)
    cancelled = False
    if "confidence" in args:
        found = interval(numbers, args["confidence"], args.get("resamples", 1000), go_on)
        if found is None:
            cancelled = True
        else:
            facts |= {"mean_from": found[0], "mean_to": found[1]}
    text = show(facts)
    if cancelled:
        text += "\nCancelled before the interval was known."
    return ToolResult([Content_Text(text)], json.dumps(facts), cancelled, None, [])


def go_on(done: int, all: int) -> bool:
    progress.report([Content_Text(f"drew {done} of {all} samples")], None)
    return not cancellation.is_cancelled()


class ArgumentPreparation(exports.ArgumentPreparation):
    def prepare_arguments(self, tool: str, arguments: str) -> str:
        """Takes `"1, 2, 3"` and `5` for lists; validation has the last word."""
        args = json.loads(arguments)
        numbers = args.get("numbers")
        if isinstance(numbers, str):
            numbers = numbers_in(numbers)
            if numbers is not None:
                args["numbers"] = numbers
        elif isinstance(numbers, (int, float)) and not isinstance(numbers, bool):
            args["numbers"] = [numbers]
        return json.dumps(args)


class BeforeToolCall(exports.BeforeToolCall):
    def before(self, call: ToolCall, context: HookContext) -> Verdict:
        try:
            most = budget.parse_max(config.read("max_calls"))
            refusal = budget.spend(call.name, most, key_value.read, key_value.write)
        except ValueError as problem:
            raise Err(str(problem))
        except Err as failed:
            raise Err(why(failed.value))
        if refusal is None:
            return Verdict_Proceed()
        return Verdict_Block(Refusal(refusal, None))


def why(error: key_value.Error) -> str:
    if isinstance(error, Error_Denied):
        return "calls are counted in the key-value store; grant it: grants.kv = \"on\""
    return f"the calls could not be counted: {error}"
