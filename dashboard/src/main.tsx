import { render } from "preact";
import { signInByAddress } from "./api";
import { App } from "./app";
import { connect } from "./live/bus";

const root = document.getElementById("app");
if (root) {
  void signInByAddress().then(() => {
    root.textContent = "";
    render(<App />, root);
    connect();
  });
}
