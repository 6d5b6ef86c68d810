//! Exact arithmetic: fractions of whole numbers as large as it takes, no rounding until the last
//! line is written.
//!
//! `token` cuts an expression into pieces, `eval` is the grammar, `function` the functions, and
//! `number` the values with their bounds and their ways to be written.

mod eval;
mod function;
mod number;
mod token;

use cofferdam_plugin::{
    Deserialize, Failure, JsonSchema, Reply, Result, Value, export, json, tool,
};

use eval::{Fault, evaluate};
use number::Number;

const EXPRESSIONS_MAX: usize = 50;
const CHARS_MAX: usize = 4_000;
const DIGITS_MAX: u32 = 1_000;
const DIGITS: u32 = 10;

const DESCRIPTION: &str = "Calculates exactly, with fractions and whole numbers of any size. Use it for any arithmetic \
    that must be right. Operators: + - * / % ^ and parentheses. Functions: abs, min, max, floor, ceil, round(x, places), \
    gcd, lcm, factorial, sqrt. Numbers: 42, 0.1, 1_000, 2.5e3. Returns for each expression the exact value and a decimal.";

/// What the model passes.
#[derive(Deserialize, JsonSchema)]
struct Calc {
    /// One or more expressions, such as `["1/3 + 1/6", "2^100 % 97"]`.
    #[schemars(length(min = 1, max = 50))]
    expressions: Vec<String>,
    /// Digits after the decimal point, where a decimal does not end before; 10 if absent.
    #[schemars(range(max = 1000))]
    digits: Option<u32>,
}

fn calc(args: Calc) -> Result {
    let digits = args.digits.unwrap_or(DIGITS);
    if args.expressions.is_empty()
        || args.expressions.len() > EXPRESSIONS_MAX
        || digits > DIGITS_MAX
    {
        return Err(Failure::rejected(format!(
            "between 1 and {EXPRESSIONS_MAX} expressions and at most {DIGITS_MAX} digits"
        )));
    }
    let mut lines = Vec::new();
    let mut results = Vec::new();
    for (index, expression) in args.expressions.iter().enumerate() {
        let value =
            checked(expression, digits).map_err(|fault| refusal(index, expression, &fault))?;
        let shown = Shown::new(&value, digits);
        lines.push(shown.line(expression));
        results.push(shown.details(expression));
    }
    Ok(Reply::text(lines.join("\n")).details(json!({ "results": results })))
}

fn checked(expression: &str, digits: u32) -> Result<Number, Fault> {
    if expression.chars().count() > CHARS_MAX {
        return Err(Fault {
            column: CHARS_MAX,
            message: format!("an expression has at most {CHARS_MAX} characters"),
        });
    }
    evaluate(expression, digits)
}

/// Says what is wrong and points at it.
fn refusal(index: usize, expression: &str, fault: &Fault) -> Failure {
    let caret = " ".repeat(fault.column.saturating_sub(1));
    Failure::rejected(format!(
        "expression {}, column {}: {}\n{expression}\n{caret}^",
        index + 1,
        fault.column,
        fault.message
    ))
}

/// A value as people and models read it.
struct Shown {
    exact: Option<String>,
    decimal: String,
    rounded: bool,
}

impl Shown {
    fn new(value: &Number, digits: u32) -> Self {
        let (decimal, rounded) = value.decimal(digits);
        Self {
            exact: value.exact.then(|| value.ratio.to_string()),
            decimal,
            rounded: rounded || !value.exact,
        }
    }

    fn line(&self, expression: &str) -> String {
        let sign = if self.rounded { "≈" } else { "=" };
        match &self.exact {
            Some(exact) if *exact == self.decimal => format!("{expression} = {exact}"),
            Some(exact) => format!("{expression} = {exact} {sign} {}", self.decimal),
            None => format!("{expression} {sign} {}", self.decimal),
        }
    }

    fn details(&self, expression: &str) -> Value {
        json!({
            "expression": expression,
            "exact": self.exact,
            "decimal": self.decimal,
            "rounded": self.rounded,
        })
    }
}

/// Models like to send one string, or to call it `expression`; both are plain enough.
fn prepare(_tool: &str, mut arguments: Value) -> Result<Value> {
    if let Some(map) = arguments.as_object_mut() {
        if !map.contains_key("expressions") {
            if let Some(one) = map.shift_remove("expression") {
                map.insert("expressions".to_owned(), one);
            }
        }
        if let Some(expressions) = map.get_mut("expressions") {
            if expressions.is_string() {
                *expressions = json!([expressions.take()]);
            }
        }
    }
    Ok(arguments)
}

export! {
    tools: [tool("calc", DESCRIPTION, calc).label("Calculate").read_only().idempotent()],
    prepare: prepare,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, expected: &str) {
        let args = Calc { expressions: vec![expression.to_owned()], digits: None };
        let text = calc(args).map_or_else(|failure| failure.message, |reply| reply.to_text());
        assert_eq!(text, expected);
    }

    #[test]
    fn exact_where_floats_are_not() {
        check("0.1 + 0.2", "0.1 + 0.2 = 3/10 = 0.3");
        check("1/3 + 1/6", "1/3 + 1/6 = 1/2 = 0.5");
        check("2/3", "2/3 = 2/3 ≈ 0.6666666667");
        check("2^100", "2^100 = 1267650600228229401496703205376");
        check("-2/3", "-2/3 = -2/3 ≈ -0.6666666667");
        check("1/10^20", "1/10^20 = 1/100000000000000000000 ≈ 0.0000000000");
    }

    #[test]
    fn the_usual_order_of_operations() {
        check("-2^2", "-2^2 = -4");
        check("2^3^2", "2^3^2 = 512");
        check("2 * -3 + 4", "2 * -3 + 4 = -2");
        check("2^-2", "2^-2 = 1/4 = 0.25");
        check("-7 % 3", "-7 % 3 = 2");
        check("(1 + 2) × 3 ÷ 4", "(1 + 2) × 3 ÷ 4 = 9/4 = 2.25");
    }

    #[test]
    fn functions() {
        check("max(1, 5/2, 2)", "max(1, 5/2, 2) = 5/2 = 2.5");
        check("gcd(12, 18) + lcm(4, 6)", "gcd(12, 18) + lcm(4, 6) = 18");
        check("factorial(20)", "factorial(20) = 2432902008176640000");
        check("round(-2.5)", "round(-2.5) = -3");
        check("round(2/3, 2)", "round(2/3, 2) = 67/100 = 0.67");
        check("floor(-1/2)", "floor(-1/2) = -1");
        check("sqrt(9/16)", "sqrt(9/16) = 3/4 = 0.75");
        check("sqrt(2)", "sqrt(2) ≈ 1.4142135624");
    }

    #[test]
    fn a_fault_points_at_its_column() {
        check("1 / (2 - 2)", "expression 1, column 3: division by zero\n1 / (2 - 2)\n  ^");
        check(
            "2 + * 3",
            "expression 1, column 5: expected a number, a function or `(`\n2 + * 3\n    ^",
        );
        check("(1 + 2", "expression 1, column 7: expected `)`\n(1 + 2\n      ^");
        check("2 $ 3", "expression 1, column 3: unexpected `$`\n2 $ 3\n  ^");
    }

    #[test]
    fn work_is_bounded() {
        let too_large = |expression: &str| {
            let args = Calc { expressions: vec![expression.to_owned()], digits: None };
            let message = calc(args).unwrap_err().message;
            assert!(message.contains("10000 digits"), "{message}");
        };
        too_large("9^9^9");
        too_large("2^-99999999");
        too_large("1e20000");
        too_large("factorial(5000)");
        too_large("factorial(3000) * factorial(3000)");
        let deep = "(".repeat(1_000);
        let args = Calc { expressions: vec![deep], digits: None };
        assert!(calc(args).unwrap_err().message.contains("nested"));
    }

    #[test]
    fn sloppy_arguments_are_repaired() {
        let expected = json!({ "expressions": ["1+1"] });
        assert_eq!(prepare("calc", json!({ "expression": "1+1" })).unwrap(), expected);
        assert_eq!(prepare("calc", json!({ "expressions": "1+1" })).unwrap(), expected);
        assert_eq!(prepare("calc", expected.clone()).unwrap(), expected);
    }
}
