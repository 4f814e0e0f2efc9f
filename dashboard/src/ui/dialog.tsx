// Modal dialog. The native element traps the focus and closes on Escape.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Icon } from "./icons";

interface Props {
  title: string;
  close: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, close, children }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const label = useId();
  useEffect(() => {
    ref.current?.showModal();
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={label} onClose={close} onClick={(event) => event.target === ref.current && close()}>
      <div class="sheet">
        <header>
          <h2 id={label}>{title}</h2>
          <button class="button plain tiny" onClick={close} aria-label="Close">
            <Icon name="close" size={16} />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
