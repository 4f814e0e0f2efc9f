import { render } from "preact";
import { App } from "./app";
import { follow } from "./live/bus";

const root = document.getElementById("app");
if (root) {
  root.textContent = "";
  render(<App />, root);
  follow();
}
