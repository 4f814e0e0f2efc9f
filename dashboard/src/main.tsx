import { render } from "preact";
import { App } from "./app";
import { connect } from "./live/bus";

const root = document.getElementById("app");
if (root) {
  root.textContent = "";
  render(<App />, root);
  connect();
}
